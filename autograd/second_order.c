#include "autograd/second_order.h"
#include "autograd/dual_tape.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include <math.h>

/* One vector over all inputs that are checked. */
struct vector {
    int n;
    sb_tensor **part; /* of each input; NULL: not checked, or the same tensor as an earlier input */
};

static void vector_end(struct vector *v)
{
    for (int i = 0; v->part && i < v->n; i++)
        sb_tensor_release(v->part[i]);
    memory_free(v->part);
}

/* A vector of +-1, or of zeros without a stream. */
static bool vector_begin(struct vector *v, const struct gradient *g, int n, sb_random *random)
{
    *v = (struct vector){n, memory_new((size_t)n * sizeof(sb_tensor *))};
    if (!v->part)
        return sb_fail("out of memory for %d inputs", n);
    for (int i = 0; i < n; i++) {
        const sb_tensor *x = g[i].x;
        if (g[i].n == 0 || gradient_is_repeated(g, i))
            continue;
        v->part[i] = tensor_new("gradcheck", x->device, SB_F64, x->rank, x->dim);
        if (!v->part[i] || !tensor_zero(v->part[i]))
            return false;
        double *element = v->part[i]->data;
        for (int64_t k = 0; random && k < g[i].n; k++)
            element[k] = sb_random_uniform(random) < 0.5 ? 1 : -1;
    }
    return true;
}

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
    sb_tensor *dy = NULL;
    bool ok = dual_tape_begin(&dual, SB_RECORD, e->x, v->part, v->n);
    evaluation_rewind(e, &dual.tape);
    sb_tensor *y = ok ? evaluation_run(e, &e->up) : NULL;
    y = y ? twin_of("gradcheck", y) : NULL;
    ok = y != NULL;
    if (ok && y->requires_grad) {
        dy = evaluation_dy(y);
        ok = dy && sb_backward_from(y, dy);
    }
    if (ok)
        vector_read(hv, e->x, true);
    sb_tensor_release(dy);
    return dual_tape_end(&dual) && ok;
}

/* x += step v */
static void shift(struct evaluation *e, const struct vector *v, double step)
{
    for (int i = 0; i < v->n; i++)
        for (int64_t k = 0; v->part[i] && k < tensor_size(v->part[i]); k++)
            ((double *)e->x[i]->data)[k] += step * ((const double *)v->part[i]->data)[k];
}

static bool gradient_at(struct evaluation *e, const struct vector *v, double step,
                        struct vector *gradient)
{
    shift(e, v, step);
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
        ok = ok && vector_begin(&work[i], g, n, NULL);
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
    bool ok = vector_begin(&u, gradients, n, &random) && vector_begin(&v, gradients, n, &random) &&
              vector_begin(&hu, gradients, n, NULL) && vector_begin(&hv, gradients, n, NULL) &&
              hessian_product(e, &u, &hu) && hessian_product(e, &v, &hv) &&
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
