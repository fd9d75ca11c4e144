#include "ops/cpu/ids.h"
#include "ops/cpu/rows.h"
#include "ops/loss.h"

static int64_t cross_entropy_find_bad_id(int64_t rows, int64_t V, const void *ids)
{
    return first_bad_id(rows, ids, INT32_MIN, V);
}

static int64_t cross_entropy_find_bad_weight(int64_t V, const void *class_weight)
{
    const real *w = class_weight;
    for (int64_t v = 0; v < V; v++)
        if (!(w[v] >= 0 && w[v] < INFINITY))
            return v;
    return -1;
}

/* Targets in the kernel's dtype. */
struct plan {
    int64_t V;
    real keep, spread;  /* the smoothed target is keep t_v + spread: 1 - e and e / V */
    const real *w;      /* class weights, or NULL */
    real spread_weight; /* sum_v w_v spread */
};

static struct plan cross_entropy_make_plan(const struct cross_entropy_targets *t)
{
    const real *w = t->class_weight;
    double total = w ? 0 : (double)t->V;
    for (int64_t v = 0; w && v < t->V; v++)
        total += (double)w[v];
    const double spread = t->label_smoothing / (double)t->V;
    return (struct plan){t->V, (real)(1 - t->label_smoothing), (real)spread, w,
                         (real)(spread * total)};
}

/*
 * The loops over a row are inlined and called with a literal NULL when there are no weights w or no
 * probabilities t, so that no loop contains a branch.
 *
 * loss = -sum_v w_v t_v log p_v, log p_v = (x_v - max) - log_sum; this is the part of label
 * smoothing.
 */
static inline __attribute__((always_inline)) real
smoothing_loss(const struct plan *p, const real *w, const real *x, real max, real log_sum)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < p->V; v++)
        sum += (w ? w[v] : 1) * (x[v] - max);
    return p->spread_weight * log_sum - p->spread * sum;
}

/* The part of the target, and its weight. */
static inline __attribute__((always_inline)) real target_loss(const struct plan *p, const real *w,
                                                              const real *t, const real *x,
                                                              real max, real log_sum, real *weight)
{
    real sum = 0, sum_weight = 0;
#pragma omp simd reduction(+ : sum, sum_weight)
    for (int64_t v = 0; v < p->V; v++) {
        real share = (w ? w[v] : 1) * t[v], term = share * (log_sum - (x[v] - max));
        sum_weight += share;
        sum += share == 0 ? 0 : term; /* 0 log 0 is 0 */
    }
    *weight = sum_weight;
    return p->keep * sum;
}

static real cross_entropy_row_loss(const struct plan *p, const real *t, const int32_t *id,
                                   const real *x, real max, real log_sum, real *weight)
{
    const real *w = p->w;
    real loss;
    if (t) {
        loss = w ? target_loss(p, w, t, x, max, log_sum, weight)
                 : target_loss(p, NULL, t, x, max, log_sum, weight);
    } else {
        *weight = w ? w[*id] : 1;
        loss = *weight == 0 ? 0 : p->keep * *weight * (log_sum - (x[*id] - max));
    }
    if (p->spread == 0) /* avoids 0 times an infinite x_v */
        return loss;
    return loss +
           (w ? smoothing_loss(p, w, x, max, log_sum) : smoothing_loss(p, NULL, x, max, log_sum));
}

static bool cross_entropy_forward(const struct cross_entropy_targets *targets, const void *x_,
                                  const struct cross_entropy_found *found)
{
    const struct plan p = cross_entropy_make_plan(targets);
    const int64_t V = p.V;
    const int32_t *ids = targets->probabilities ? NULL : targets->targets;
    const real *t = targets->probabilities ? targets->targets : NULL;
    real *max = found->max, *inverse = found->inverse, *loss = found->loss;
    real *weight = found->weight;
#pragma omp parallel for schedule(static) if (targets->rows * V > PARALLEL_WORK)
    for (int64_t r = 0; r < targets->rows; r++) {
        const real *x = (const real *)x_ + r * V;
        max[r] = inverse[r] = loss[r] = weight[r] = 0;
        if (ids && ids[r] < 0)
            continue;
        max[r] = row_max(V, x);
        real sum = row_sum_exp(V, x, max[r]);
        inverse[r] = 1 / sum;
        loss[r] = cross_entropy_row_loss(&p, t ? t + r * V : NULL, ids ? ids + r : NULL, x, max[r],
                                         real_log(sum), &weight[r]);
    }
    return true;
}

/* float64 costs little here: one number for each row of x. */
static bool cross_entropy_reduce(int64_t rows, bool mean, const void *loss_, const void *weight_,
                                 void *divisor_, void *y, bool *counted)
{
    const real *loss = loss_, *weight = weight_;
    double sum = 0, divisor = 0;
    for (int64_t r = 0; r < rows; r++) {
        sum += (double)loss[r];
        divisor += weight ? (double)weight[r] : 1;
    }
    divisor = mean ? divisor : 1;
    *counted = divisor != 0;
    *(real *)divisor_ = (real)divisor;
    *(real *)y = (real)(sum / divisor);
    return true;
}

/* What backward reads for a row. */
struct row {
    const real *x;
    real max, inverse, weight;
    real g; /* the gradient of the row's loss */
    bool fresh;
};

/* loss = -sum_v w_v t_v log softmax(x)_v. For ids, t is NULL and the caller adds the part of the
   target. dx may be x. */
static inline __attribute__((always_inline)) void
backward_row(const struct plan *p, const struct row *row, const real *w, const real *t, real *dx)
{
    const real *x = row->x;
    const real max = row->max, inverse = row->inverse, g = row->g;
    const real keep = p->keep, spread = p->spread;
    const real W = keep * row->weight + p->spread_weight; /* sum_v w_v t_v, smoothed */
    const bool fresh = row->fresh;
    const int64_t V = p->V;
#pragma omp simd
    for (int64_t v = 0; v < V; v++) {
        real softmax = real_exp(x[v] - max) * inverse;
        real target = t ? keep * t[v] + spread : spread;
        dx[v] = before(fresh, dx[v]) + g * (W * softmax - (w ? w[v] : 1) * target);
    }
}

static void cross_entropy_backward_any(const struct plan *p, const struct row *row, const real *t,
                                       real *dx)
{
    if (p->w && t)
        backward_row(p, row, p->w, t, dx);
    else if (p->w)
        backward_row(p, row, p->w, NULL, dx);
    else if (t)
        backward_row(p, row, NULL, t, dx);
    else
        backward_row(p, row, NULL, NULL, dx);
}

static bool cross_entropy_backward(const struct cross_entropy_targets *targets, const void *x_,
                                   const struct cross_entropy_found *found,
                                   const struct cross_entropy_dy *d, bool fresh, void *dx_)
{
    const struct plan p = cross_entropy_make_plan(targets);
    const int64_t V = p.V;
    const int32_t *ids = targets->probabilities ? NULL : targets->targets;
    const real *t = targets->probabilities ? targets->targets : NULL, *dy = d->dy;
    const real *max = found->max, *inverse = found->inverse, *weight = found->weight;
    const real divisor = d->divisor ? *(const real *)d->divisor : 1;
#pragma omp parallel for schedule(static) if (targets->rows * V > PARALLEL_WORK)
    for (int64_t r = 0; r < targets->rows; r++) {
        const struct row row = {(const real *)x_ + r * V,  max[r], inverse[r], weight[r],
                                dy[r * d->step] / divisor, fresh};
        real *dx = (real *)dx_ + r * V;
        if (ids && ids[r] < 0) {
            memset(dx, 0, fresh ? (size_t)V * sizeof *dx : 0);
            continue;
        }
        cross_entropy_backward_any(&p, &row, t ? t + r * V : NULL, dx);
        if (ids)
            dx[ids[r]] -= row.g * row.weight * p.keep;
    }
    return true;
}

KERNELS(cross_entropy) = {cross_entropy_find_bad_id, cross_entropy_find_bad_weight,
                          cross_entropy_forward, cross_entropy_reduce, cross_entropy_backward};
