/*
 * For a direction v, <gradient, v> must be the derivative J v of the function along v. One run of f
 * on dual numbers gives J v, so it checks all elements together. Each element of v is +-1 over the
 * sum of |gradient| of its input, so that all inputs count alike. Inputs whose gradients differ by
 * more than a factor of 100 have directions of their own: a gradient that is all rounding, as of a
 * bias that softmax ignores, would need a tangent that drowns the others.
 *
 * The error is |<gradient, v> - J v|, relative to the largest sum of |gradient tangent| that
 * rounds on the way (struct difference). Where that exceeds the tolerance, what the rounding of
 * inputs changes is subtracted. An operation may also cancel inside, as when softmax ignores a
 * constant: 4 ulp of the function's value count as rounding, and 64 for a gradient that is tiny
 * beside it.
 */
#include "autograd/gradcheck_parts.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include <float.h>
#include <limits.h>
#include <math.h>

/* Changes all inputs by up to 8 ulp. */
static void perturb(struct directions *d)
{
    for (int j = 0; j < d->n; j++) {
        struct gradient *g = &d->gradient[j];
        g->written = tensor_written(g->x);
        for (int64_t i = 0; i < g->n && !gradient_is_repeated(d->gradient, j); i++) {
            const double r = 2 * evaluation_weight(7 * i + j) - 1.5; /* in -1..1 */
            g->first[i] = sb_tensor_get(g->x, i);
            sb_tensor_set(g->x, i, g->first[i] * (1 + 8 * DBL_EPSILON * r));
        }
    }
}

/* Gives all inputs their values from before, to the bit. */
static void put_back(struct directions *d)
{
    for (int j = 0; j < d->n; j++) {
        struct gradient *g = &d->gradient[j];
        if (g->n > 0 && !gradient_is_repeated(d->gradient, j) && sb_tensor_write(g->x, g->first))
            tensor_forget_writes(g->x, g->written);
    }
}

static void clear_gradients(struct directions *d)
{
    for (int j = 0; j < d->n; j++)
        sb_tensor_clear_grad(d->gradient[j].x);
}

bool directions_find_noise(struct directions *d)
{
    clear_gradients(d);
    perturb(d);
    const bool ok = evaluation_backward(d->evaluation, &d->evaluation->down);
    put_back(d);
    for (int j = 0; j < d->n; j++) {
        struct gradient *g = &d->gradient[j];
        const sb_tensor *grad = sb_tensor_grad(g->x);
        for (int64_t i = 0; i < g->n; i++)
            g->size += fabs(g->backward[i]);
        for (int64_t i = 0; ok && grad && i < g->n; i++)
            g->noise += fabs(sb_tensor_get(grad, i) - g->backward[i]);
    }
    clear_gradients(d);
    return ok;
}

/* What rounding explains of an input's gradient. A change that is large beside a gradient which is
   not tiny comes from a kink or a tie, which the rounding of inputs crosses. */
static double floor_of(const struct directions *d, const struct gradient *g)
{
    const struct evaluation *e = d->evaluation;
    double value = 0;
    for (int64_t k = 0; k < e->outputs; k++)
        value += evaluation_weight(k) * fabs(e->up[k]);
    const bool tiny = g->size <= 1e-9 * value, kink = !tiny && g->noise > 1e-8 * g->size;
    return (kink ? 0 : 4 * g->noise) + (tiny ? 64 : 4) * DBL_EPSILON * value;
}

/* The group of an input: two powers of ten of its gradient. */
static int group_of(const struct gradient *g)
{
    return g->size > 0 && isfinite(g->size) ? (int)floor(log10(g->size) / 2) : -1000;
}

/* One vector over the inputs that are checked. */
struct vector {
    int n;
    sb_tensor **part; /* of each input; NULL: not checked, of another group, or the same tensor as
                         an earlier input */
};

enum { ALL_GROUPS = INT_MAX };

static void vector_end(struct vector *v)
{
    for (int i = 0; v->part && i < v->n; i++)
        sb_tensor_release(v->part[i]);
    memory_free(v->part);
}

/* A vector of +-1 over a group, or of zeros without a stream. */
static bool vector_begin(struct vector *v, const struct gradient *g, int n, int group,
                         sb_random *random)
{
    *v = (struct vector){n, memory_new((size_t)n * sizeof(sb_tensor *))};
    if (!v->part)
        return sb_fail("out of memory for %d inputs", n);
    for (int i = 0; i < n; i++) {
        const sb_tensor *x = g[i].x;
        if (g[i].n == 0 || gradient_is_repeated(g, i) ||
            (group != ALL_GROUPS && group_of(&g[i]) != group))
            continue;
        v->part[i] = tensor_new("gradcheck", sb_device_cpu(), SB_F64, x->rank, x->dim);
        if (!v->part[i] || !tensor_zero(v->part[i]))
            return false;
        double *element = v->part[i]->data;
        for (int64_t k = 0; random && k < g[i].n; k++)
            element[k] = sb_random_uniform(random) < 0.5 ? 1 : -1;
    }
    return true;
}

/* Fills elements `first` to `end` of an input's direction, and clears the others. */
static void aim(sb_tensor *part, const struct gradient *g, int64_t first, int64_t end,
                sb_random *random)
{
    const double size = g->size > 0 && isfinite(g->size) ? 1 / g->size : 1;
    double *v = part->data;
    for (int64_t k = 0; k < g->n; k++) {
        const bool up = sb_random_uniform(random) < 0.5;
        v[k] = k < first || k >= end ? 0 : up ? size : -size;
    }
}

/* off / size; where that exceeds the tolerance, less what rounding explains. */
static double relative(double off, double size, double rounding, double tolerance)
{
    if (off == 0 || off <= tolerance * size)
        return off == 0 ? 0 : off / size;
    return off <= rounding ? 0 : (off - rounding) / size;
}

/* The error along v; NaN where a number is not finite. *largest is that of the directions of its
   group so far. */
static bool error_along(struct directions *d, const struct vector *along_v, double *largest,
                        double *error)
{
    struct difference along;
    if (!exact_along(d->evaluation, d->x, along_v->part, d->n, *largest == 0, &along))
        return false;
    *largest = fmax(*largest, along.largest);
    double product = 0, again = 0, size = fmax(*largest, fabs(along.value)), before = 0;
    double rounding = 0;
    for (int i = 0; i < d->n; i++) {
        const struct gradient *g = &d->gradient[i];
        const double *v = along_v->part[i] ? along_v->part[i]->data : NULL;
        double sum = 0, longest = 0;
        for (int64_t k = 0; v && k < g->n; k++) {
            longest = fmax(longest, fabs(v[k]));
            product += g->backward[k] * v[k];
            again += g->again[k] * v[k];
            sum += fabs(g->backward[k] * v[k]);
            before += fabs(g->before[k] * v[k]);
        }
        size = fmax(size, sum);
        rounding += v ? longest * floor_of(d, g) : 0;
    }
    const double off = fabs(product - along.value), off_again = fabs(again - along.value);
    *error = fmax(relative(off, size, rounding, d->tolerance),
                  relative(off_again, fmax(size, before), rounding, d->tolerance));
    if (isnan(off) || isnan(off_again))
        *error = NAN;
    if (*error > d->error || isnan(*error)) {
        d->error = *error;
        d->backward = off >= off_again ? product : again;
        d->derivative = along.value;
    }
    return true;
}

static bool directions_compare_group(struct directions *d, int number)
{
    struct vector v;
    double largest = 0, error;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    bool ok = vector_begin(&v, d->gradient, d->n, number, NULL), wrong = false;
    for (int k = 0; ok && k < d->count; k++) {
        for (int i = 0; i < d->n; i++)
            if (v.part[i])
                aim(v.part[i], &d->gradient[i], 0, d->gradient[i].n, &random);
        ok = error_along(d, &v, &largest, &error);
        wrong |= ok && !(error <= d->tolerance);
    }
    for (int i = 0; i < d->n; i++)
        d->suspect[i] |= wrong && d->gradient[i].n > 0 && group_of(&d->gradient[i]) == number;
    vector_end(&v);
    return ok;
}

static bool is_first_of_its_group(const struct directions *d, int input)
{
    for (int j = 0; j < input; j++)
        if (d->gradient[j].n > 0 && group_of(&d->gradient[j]) == group_of(&d->gradient[input]))
            return false;
    return d->gradient[input].n > 0;
}

bool directions_compare(struct directions *d)
{
    d->error = 0;
    for (int i = 0; i < d->n; i++)
        if (is_first_of_its_group(d, i) && !directions_compare_group(d, group_of(&d->gradient[i])))
            return false;
    return true;
}

/* ---- which element is wrong ---- */

/* Halves the range of elements of the one input until one is left: the half with the larger
   error. */
static bool halve(struct directions *d, const struct vector *v, int64_t *index)
{
    int64_t first = 0, end = d->gradient->n;
    double largest = 0;
    while (end - first > 1) {
        const int64_t middle = first + (end - first) / 2;
        double error[2];
        for (int half = 0; half < 2; half++) {
            sb_random random = sb_random_new(2, SB_STREAM_USER);
            aim(v->part[0], d->gradient, half ? middle : first, half ? end : middle, &random);
            if (!error_along(d, v, &largest, &error[half]))
                return false;
        }
        if (isnan(error[1]) || error[1] > error[0])
            first = middle;
        else
            end = middle;
    }
    *index = first;
    return true;
}

/* The directions of input i alone. */
static struct directions only(const struct directions *all, int i)
{
    struct directions one = *all;
    one.x = &all->x[i];
    one.gradient = &all->gradient[i];
    one.n = 1;
    return one;
}

bool directions_locate(struct directions *d, int *input, int64_t *index)
{
    double worst = -1;
    const struct directions all = *d;
    for (int i = 0; i < all.n; i++) {
        bool suspect = false;
        struct directions one = only(&all, i);
        one.suspect = &suspect;
        if (!all.suspect[i] || gradient_is_repeated(all.gradient, i))
            continue;
        if (!directions_compare(&one))
            return false;
        if (one.error > worst || isnan(one.error)) {
            worst = isnan(one.error) ? INFINITY : one.error;
            *input = i;
        }
    }
    struct directions one = only(&all, *input);
    struct vector v;
    bool ok = vector_begin(&v, one.gradient, 1, ALL_GROUPS, NULL) && halve(&one, &v, index);
    vector_end(&v);
    return ok;
}

/* ---- the second order: products with the Hessian H of the weighted sum of y ---- */

/* The product of two vectors, and the sum of the products' sizes. */
static double vector_product(const struct vector *a, const struct vector *b, double *size)
{
    double product = 0;
    *size = 0;
    for (int i = 0; i < a->n; i++)
        for (int64_t k = 0; a->part[i] && k < tensor_size(a->part[i]); k++) {
            const double part =
                ((const double *)a->part[i]->data)[k] * ((const double *)b->part[i]->data)[k];
            product += part;
            *size += fabs(part);
        }
    return product;
}

/* Reads gradients, or the tangents of those of the dual twins; missing ones are 0. */
static void vector_read(struct vector *to, sb_tensor *const x[], bool dual)
{
    for (int i = 0; i < to->n; i++) {
        const sb_tensor *grad =
            to->part[i] ? sb_tensor_grad(dual ? twin_of("gradcheck", x[i]) : x[i]) : NULL;
        for (int64_t k = 0; grad && k < tensor_size(grad); k++)
            ((double *)to->part[i]->data)[k] =
                dual ? sb_tensor_tangent(grad, k) : sb_tensor_get(grad, k);
    }
}

/* hv = H v, by backward of the weighted sum of y on dual numbers. */
static bool hessian_product(struct evaluation *e, const struct vector *v, struct vector *hv)
{
    struct dual_tape dual;
    sb_tensor *y = evaluation_dual(e, &dual, SB_RECORD, e->x, v->part, v->n);
    const bool ok = y && evaluation_back(y, NULL);
    if (ok)
        vector_read(hv, e->x, true);
    return dual_tape_end(&dual) && ok;
}

/* The gradient at x + step v, which x becomes. */
static bool gradient_at(struct evaluation *e, const struct vector *v, double step,
                        struct vector *gradient)
{
    for (int i = 0; i < v->n; i++)
        for (int64_t k = 0; v->part[i] && k < tensor_size(v->part[i]); k++)
            ((double *)e->x[i]->data)[k] += step * ((const double *)v->part[i]->data)[k];
    const bool ok = evaluation_backward(e, &e->down);
    vector_read(gradient, e->x, false);
    for (int i = 0; i < v->n; i++)
        sb_tensor_clear_grad(e->x[i]);
    return ok;
}

/* The largest |a - b| over the largest |a| or |gradient|. */
static double largest_error(const struct vector *a, const struct vector *b,
                            const struct gradient *gradients)
{
    double off = 0, size = 0;
    for (int i = 0; i < a->n; i++)
        for (int64_t k = 0; a->part[i] && k < tensor_size(a->part[i]); k++) {
            const double x = ((const double *)a->part[i]->data)[k];
            const double error = fabs(x - ((const double *)b->part[i]->data)[k]);
            off = error > off || isnan(error) ? error : off;
            size = fmax(size, fmax(fabs(x), fabs(gradients[i].backward[k])));
        }
    return off == 0 ? 0 : off / size;
}

/* Sets the inputs to the values from which differences start. */
static void vector_copy_values(const struct vector *from, sb_tensor *const x[])
{
    for (int i = 0; i < from->n; i++) {
        const uint64_t written = x[i] ? tensor_written(x[i]) : 0;
        if (from->part[i] && sb_tensor_write(x[i], from->part[i]->data))
            tensor_forget_writes(x[i], written);
    }
}

/* to = (g(x + h v) - g(x - h v)) / 2h, from the values `start` of x. */
static bool difference_of_gradients(struct evaluation *e, const struct vector *v, double h,
                                    const struct vector *start, struct vector *up,
                                    struct vector *down, struct vector *to)
{
    vector_copy_values(start, e->x);
    bool ok = gradient_at(e, v, h, up);
    vector_copy_values(start, e->x);
    ok = ok && gradient_at(e, v, -h, down);
    vector_copy_values(start, e->x);
    for (int i = 0; ok && i < v->n; i++)
        for (int64_t k = 0; v->part[i] && k < tensor_size(v->part[i]); k++) {
            const double *above = up->part[i]->data, *below = down->part[i]->data;
            ((double *)to->part[i]->data)[k] = (above[k] - below[k]) / (2 * h);
        }
    return ok;
}

/* The error of hv against differences of gradients, with Richardson's extrapolation. */
static bool curvature_error(struct evaluation *e, const struct gradient *g, int n,
                            const struct vector *v, const struct vector *hv, double *error)
{
    struct vector work[5] = {{0}}, *up = &work[0], *down = &work[1], *start = &work[2];
    struct vector *whole = &work[3], *half = &work[4];
    bool ok = true;
    for (int i = 0; i < 5; i++)
        ok = ok && vector_begin(&work[i], g, n, ALL_GROUPS, NULL);
    for (int i = 0; ok && i < n; i++)
        if (start->part[i])
            ok = sb_tensor_read(e->x[i], start->part[i]->data);
    ok = ok && difference_of_gradients(e, v, e->step, start, up, down, whole) &&
         difference_of_gradients(e, v, e->step / 2, start, up, down, half);
    for (int i = 0; ok && i < n; i++)
        for (int64_t k = 0; half->part[i] && k < g[i].n; k++) {
            double *fine = half->part[i]->data;
            fine[k] = (4 * fine[k] - ((const double *)whole->part[i]->data)[k]) / 3;
        }
    if (ok)
        *error = largest_error(hv, half, g);
    for (int i = 0; i < 5; i++)
        vector_end(&work[i]);
    return ok;
}

bool second_order_compare(struct evaluation *e, const struct gradient *gradients, int n,
                          sb_gradcheck_result *result)
{
    struct vector u = {0}, v = {0}, hu = {0}, hv = {0};
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    bool ok = vector_begin(&u, gradients, n, ALL_GROUPS, &random) &&
              vector_begin(&v, gradients, n, ALL_GROUPS, &random) &&
              vector_begin(&hu, gradients, n, ALL_GROUPS, NULL) &&
              vector_begin(&hv, gradients, n, ALL_GROUPS, NULL) && hessian_product(e, &u, &hu) &&
              hessian_product(e, &v, &hv) &&
              curvature_error(e, gradients, n, &v, &hv, &result->curvature);
    if (ok) {
        double size_uhv, size_vhu, size = 0;
        const double off =
            fabs(vector_product(&u, &hv, &size_uhv) - vector_product(&v, &hu, &size_vhu));
        for (int i = 0; i < n; i++)
            for (int64_t k = 0; k < gradients[i].n; k++)
                size += fabs(gradients[i].backward[k]);
        result->symmetry = off == 0 ? 0 : off / (size_uhv + size_vhu + size);
    }
    vector_end(&u);
    vector_end(&v);
    vector_end(&hu);
    vector_end(&hv);
    return ok;
}
