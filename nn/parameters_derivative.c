#include "nn/parameters_derivative.h"
#include "autograd/derivative.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <limits.h>

sb_parameters *sb_parameters_vector(const sb_parameters *set, sb_random *random)
{
    static const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    if (!set)
        return fail_null("parameters_vector", "set");
    if (parameters_ranks(set))
        return sb_fail("parameters_vector: the set is distributed over ranks");
    sb_parameters *vector = sb_parameters_of(SB_F64, 0);
    bool ok = vector != NULL;
    for (int64_t i = 0; ok && i < sb_parameters_count(set); i++) {
        const sb_tensor *like = sb_parameters_get(set, i);
        sb_tensor *t =
            sb_parameters_add(vector, sb_parameters_name(set, i), like->rank, like->dim, zero);
        ok = t != NULL;
        for (int64_t k = 0; ok && random && k < tensor_size(t); k++)
            ok = sb_tensor_set(t, k, sb_random_uniform(random) < 0.5 ? 1 : -1);
    }
    if (ok)
        return vector;
    sb_parameters_free(vector);
    return NULL;
}

/* The tensors of a set, x, and for each the one of that name in v, or NULL. */
struct product {
    int n;
    sb_tensor **x, **v, **hv;
};

static void product_end(struct product *p)
{
    for (int i = 0; p->x && i < p->n; i++)
        sb_tensor_release(p->hv[i]);
    memory_free(p->x);
}

static bool product_find(struct product *p, const char *who, const sb_parameters *set,
                         const sb_parameters *v)
{
    for (int i = 0; i < p->n; i++) {
        p->x[i] = sb_parameters_get(set, i);
        p->v[i] = sb_parameters_find(v, sb_parameters_name(set, i));
        if (p->v[i] && !shape_equal(p->x[i]->rank, p->x[i]->dim, p->v[i]->rank, p->v[i]->dim))
            return sb_fail("%s: \"%s\" is %s in the set and %s in v", who,
                           sb_parameters_name(set, i), tensor_shape(p->x[i]).text,
                           tensor_shape(p->v[i]).text);
    }
    for (int64_t i = 0; i < sb_parameters_count(v); i++)
        if (!sb_parameters_find(set, sb_parameters_name(v, i)))
            return sb_fail("%s: v has \"%s\", which the set has not", who,
                           sb_parameters_name(v, i));
    return true;
}

static bool product_begin(struct product *p, const char *who, const sb_parameters *set,
                          const sb_parameters *v)
{
    *p = (struct product){0};
    if (!set || !v)
        return fail_null(who, set ? "v" : "set");
    if (parameters_ranks(set) || parameters_ranks(v))
        return sb_fail("%s: the %s is distributed over ranks", who,
                       parameters_ranks(set) ? "set" : "vector v");
    if (sb_parameters_dtype(set) != SB_F64 || sb_parameters_dtype(v) != SB_F64)
        return sb_fail("%s: the set is of %s and v of %s; both must be f64", who,
                       sb_dtype_name(sb_parameters_dtype(set)),
                       sb_dtype_name(sb_parameters_dtype(v)));
    if (sb_parameters_count(set) == 0 || sb_parameters_count(set) > INT_MAX)
        return sb_fail("%s: the set has %lld parameters", who, (long long)sb_parameters_count(set));
    p->n = (int)sb_parameters_count(set);
    p->x = memory_new(3 * (size_t)p->n * sizeof(sb_tensor *));
    if (!p->x)
        return sb_fail("%s: out of memory for %d parameters", who, p->n);
    p->v = p->x + p->n;
    p->hv = p->v + p->n;
    return product_find(p, who, set, v);
}

bool sb_parameters_jvp(const sb_parameters *set, sb_function f, void *context,
                       const sb_parameters *v, sb_tensor **y, sb_tensor **dy)
{
    struct product p;
    if (y)
        *y = NULL;
    if (dy)
        *dy = NULL;
    const bool ok =
        product_begin(&p, "parameters_jvp", set, v) && sb_jvp(f, context, p.x, p.v, p.n, y, dy);
    product_end(&p);
    return ok;
}

sb_parameters *sb_parameters_hvp(const sb_parameters *set, sb_function f, void *context,
                                 const sb_parameters *v)
{
    struct product p;
    bool ok =
        product_begin(&p, "parameters_hvp", set, v) && sb_hvp(f, context, p.x, p.v, p.n, p.hv);
    sb_parameters *vector = ok ? sb_parameters_vector(set, NULL) : NULL;
    ok = vector != NULL;
    for (int i = 0; ok && i < p.n; i++)
        ok = sb_tensor_write(sb_parameters_get(vector, i), p.hv[i]->data);
    product_end(&p);
    if (ok)
        return vector;
    sb_parameters_free(vector);
    return NULL;
}
