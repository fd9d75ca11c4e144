#include "ops/loss.h"
#include "ops/plain/ids.h"
#include "ops/plain/real.h"

static int64_t bad_id(int64_t rows, int64_t V, const void *ids)
{
    return first_bad_id(rows, ids, INT32_MIN, V);
}

static int64_t bad_weight(int64_t V, const void *class_weight)
{
    const real *w = class_weight;
    for (int64_t v = 0; v < V; v++)
        if (!(real_value(w[v]) >= 0 && isfinite(real_value(w[v]))))
            return v;
    return -1;
}

static bool ignored(const struct cross_entropy_targets *t, int64_t r)
{
    return !t->probabilities && ((const int32_t *)t->targets)[r] < 0;
}

/* t_v of row r: the one-hot target or a distribution, weighted by w_v, and
   smoothed: (1 - e) t_v + e / V (Szegedy et al. 2015) */
static real weighted_target(const struct cross_entropy_targets *t, double e,
                            int64_t r, int64_t v)
{
    const int32_t *ids = t->targets;
    const real *p = t->targets, *w = t->class_weight;
    const real target = t->probabilities ? p[r * t->V + v] : ids[r] == v;
    const real smoothed = (real)(1 - e) * target + (real)(e / (double)t->V);
    return (w ? w[v] : 1) * smoothed;
}

/* loss = -sum_v w_v t_v log softmax(x)_v */
static void cross_entropy_row(const struct cross_entropy_targets *t, int64_t r,
                              const real *x, real *max, real *inverse,
                              real *loss, real *weight)
{
    real sum = 0;
    *max = -INFINITY;
    for (int64_t v = 0; v < t->V; v++)
        *max = real_max(*max, x[v]);
    for (int64_t v = 0; v < t->V; v++)
        sum += real_exp(x[v] - *max);
    *inverse = 1 / sum;
    for (int64_t v = 0; v < t->V; v++) {
        const real share = weighted_target(t, t->label_smoothing, r, v);
        if (real_value(share) != 0) /* 0 log 0 is 0 */
            *loss -= share * (x[v] - *max - real_log(sum));
        *weight += weighted_target(t, 0, r, v);
    }
}

static bool cross_entropy_forward(const struct cross_entropy_targets *t,
                                  const void *x,
                                  const struct cross_entropy_found *found)
{
    real *max = found->max, *inverse = found->inverse;
    real *loss = found->loss, *weight = found->weight;
    for (int64_t r = 0; r < t->rows; r++) {
        max[r] = inverse[r] = loss[r] = weight[r] = 0;
        if (!ignored(t, r))
            cross_entropy_row(t, r, (const real *)x + r * t->V, &max[r],
                              &inverse[r], &loss[r], &weight[r]);
    }
    return true;
}

/* SB_REDUCE_MEAN: divided by the sum of the weights of the ids counted; with
   probabilities, by the number of rows */
static bool cross_entropy_reduce(int64_t rows, bool mean, const void *loss_,
                                 const void *weight_, void *divisor_, void *y_,
                                 bool *counted)
{
    const real *loss = loss_, *weight = weight_;
    real *divisor = divisor_, *y = y_, sum = 0, weights = 0;
    for (int64_t r = 0; r < rows; r++) {
        sum += loss[r];
        weights += weight ? weight[r] : 1;
    }
    *divisor = mean ? weights : 1;
    *counted = real_value(*divisor) != 0;
    *y = sum / *divisor;
    return true;
}

/* dx_v = g (w softmax(x)_v - w_v t_v), with the smoothed t, w = sum_v w_v t_v,
   and g = dy / divisor. dx may be x. */
static bool cross_entropy_backward(const struct cross_entropy_targets *t,
                                   const void *x_,
                                   const struct cross_entropy_found *found,
                                   const struct cross_entropy_dy *d, bool fresh,
                                   void *dx_)
{
    const real *x = x_, *max = found->max, *inverse = found->inverse;
    const real *dy = d->dy, *divisor = d->divisor;
    real *dx = dx_;
    for (int64_t r = 0; r < t->rows; r++, x += t->V, dx += t->V) {
        const real g = dy[r * d->step] / (divisor ? *divisor : 1);
        real w = 0;
        for (int64_t v = 0; v < t->V; v++)
            w += weighted_target(t, t->label_smoothing, r, v);
        for (int64_t v = 0; v < t->V; v++) {
            const real softmax = real_exp(x[v] - max[r]) * inverse[r];
            const real share = weighted_target(t, t->label_smoothing, r, v);
            const real part = ignored(t, r) ? 0 : g * (w * softmax - share);
            dx[v] = (fresh ? 0 : dx[v]) + part;
        }
    }
    return true;
}

KERNELS(cross_entropy) = {bad_id, bad_weight, cross_entropy_forward,
                          cross_entropy_reduce, cross_entropy_backward};
