#include "cuda/ids.cuh"
#include "cuda/row_group.cuh"
#include "ops/cross_entropy.h"

namespace
{

template <class T> int64_t find_bad_id(int64_t rows, int64_t V, const void *ids)
{
    return first_bad_id("cross_entropy: targets", rows, (const int32_t *)ids, INT32_MIN, V);
}

template <class T> __global__ void look_at_weights(int64_t V, const T *w, bad_question question)
{
    GRID_STRIDE(v, V)
    if (!(w[v] >= 0 && w[v] < (T)INFINITY))
        report_bad(question, v);
}

/* As with ids, the next download reports a bad weight. */
template <class T> int64_t find_bad_weight(int64_t V, const void *class_weight)
{
    const bad_question question =
        ask_kernel("cross_entropy: class_weight[%lld] is not a finite number >= 0");
    if (V > 0)
        LAUNCH(look_at_weights<T>, dim3(blocks_for(V, THREADS)), dim3(THREADS), 0, stream, V,
               (const T *)class_weight, question);
    launched("cross_entropy");
    return -1;
}

/* Targets in the kernel's dtype. */
template <class T> struct plan {
    T keep, spread;           /* the smoothed target is keep t_v + spread: 1 - e and e / V */
    const T *w;               /* class weights, or NULL */
    const T *weighted_spread; /* sum_v w_v spread, where there are weights; */
    T even_spread;            /* and where there are none */
    const T *t;               /* probabilities, */
    const int32_t *ids;       /* or ids */

    __device__ T spread_weight() const
    {
        return w ? *weighted_spread : even_spread;
    }
    __device__ T weight(int64_t v) const
    {
        return w ? w[v] : 1;
    }
};

template <class T>
__global__ void add_class_weights(int64_t V, double spread, const T *w, T *weighted_spread)
{
    const row_group<ROW_THREADS> group;
    double total = 0;
    for (int64_t v = group.lane; v < V; v += ROW_THREADS)
        total += (double)w[v];
    total = group.sum(total);
    if (group.lane == 0)
        *weighted_spread = (T)(spread * total);
}

/* `room` has memory for the weighted spread. */
template <class T> plan<T> make_plan(const struct cross_entropy_targets *t, const scratch &room)
{
    const double spread = t->label_smoothing / (double)t->V;
    plan<T> p = {};
    p.keep = (T)(1 - t->label_smoothing);
    p.spread = (T)spread;
    p.w = (const T *)t->class_weight;
    p.weighted_spread = room.as<T>();
    p.even_spread = (T)(spread * (double)t->V);
    p.t = t->probabilities ? (const T *)t->targets : nullptr;
    p.ids = t->probabilities ? nullptr : (const int32_t *)t->targets;
    if (p.w)
        LAUNCH(add_class_weights<T>, dim3(1), dim3(ROW_THREADS), 0, stream, t->V, spread, p.w,
               room.as<T>());
    return p;
}

/*
 * loss = -sum_v w_v t_v log p_v, log p_v = (x_v - max) - log_sum; this is the part of label
 * smoothing.
 */
template <class T, int GROUP>
__device__ T smoothing_loss(const row_group<GROUP> &group, const plan<T> &p, int64_t V, const T *x,
                            T max, T log_sum)
{
    T sum = 0;
    for (int64_t v = group.lane; v < V; v += GROUP)
        sum += p.weight(v) * (x[v] - max);
    return p.spread_weight() * log_sum - p.spread * group.sum(sum);
}

/* The part of the target, and its weight. */
template <class T, int GROUP>
__device__ T target_loss(const row_group<GROUP> &group, const plan<T> &p, int64_t V, const T *x,
                         T max, T log_sum, T &weight)
{
    const T *t = p.t + group.row * V;
    T sum = 0, sum_weight = 0;
    for (int64_t v = group.lane; v < V; v += GROUP) {
        T share = p.weight(v) * t[v], term = share * (log_sum - (x[v] - max));
        sum_weight += share;
        sum += share == 0 ? 0 : term; /* 0 log 0 is 0 */
    }
    weight = group.sum(sum_weight);
    return p.keep * group.sum(sum);
}

template <class T, int GROUP>
__device__ T row_loss(const row_group<GROUP> &group, const plan<T> &p, int64_t V, int32_t id,
                      const T *x, T max, T log_sum, T &weight)
{
    T loss;
    if (p.t) {
        loss = target_loss(group, p, V, x, max, log_sum, weight);
    } else {
        weight = p.weight(id);
        loss = weight == 0 ? 0 : p.keep * weight * (log_sum - (x[id] - max));
    }
    if (p.spread == 0) /* avoids 0 times an infinite x_v */
        return loss;
    return loss + smoothing_loss(group, p, V, x, max, log_sum);
}

/* cross_entropy_found in the element type. */
template <class T> struct found_in_rows {
    T *max, *inverse, *loss, *weight;
};

/* An id >= V has been reported; its row has no loss. */
template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t V, plan<T> p, const T *x, found_in_rows<T> found)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int32_t id = p.ids ? p.ids[group.row] : 0;
    T max = 0, inverse = 0, weight = 0, loss = id < 0 ? 0 : (T)NAN;
    x += group.row * V;
    if (id >= 0 && id < V) {
        max = row_max(group, V, x);
        const T sum = row_sum_exp(group, V, x, max);
        inverse = 1 / sum;
        loss = row_loss(group, p, V, id, x, max, real_log(sum), weight);
    }
    if (group.lane == 0) {
        found.max[group.row] = max;
        found.inverse[group.row] = inverse;
        found.loss[group.row] = loss;
        found.weight[group.row] = weight;
    }
}

template <class T>
bool forward(const struct cross_entropy_targets *targets, const void *x,
             const struct cross_entropy_found *found)
{
    const scratch room("cross_entropy", sizeof(T));
    if (!room)
        return false;
    const plan<T> p = make_plan<T>(targets, room);
    const found_in_rows<T> places = {(T *)found->max, (T *)found->inverse, (T *)found->loss,
                                     (T *)found->weight};
    LAUNCH_ROWS(forward_rows, T, targets->rows, targets->V, p, (const T *)x, places);
    return launched("cross_entropy");
}

/* float64 costs little here: one number for each row of x. */
template <class T>
__global__ void reduce_rows(int64_t rows, bool mean, const T *loss, const T *weight, T *divisor,
                            T *y, bad_question question)
{
    const row_group<ROW_THREADS> group;
    double sum = 0, counted = 0;
    for (int64_t r = group.lane; r < rows; r += ROW_THREADS) {
        sum += (double)loss[r];
        counted += weight ? (double)weight[r] : 1;
    }
    sum = group.sum(sum);
    counted = group.sum(counted);
    if (group.lane > 0)
        return;
    counted = mean ? counted : 1;
    *divisor = (T)counted;
    *y = (T)(sum / counted);
    if (counted == 0)
        report_bad(question, rows);
}

/* The host does not wait for the sum of weights: if it is 0, the next download fails. */
template <class T>
bool reduce(int64_t rows, bool mean, const void *loss, const void *weight, void *divisor, void *y,
            bool *counted)
{
    bad_question question = {};
    if (mean && weight && rows > 0)
        question =
            ask_kernel("cross_entropy: none of %lld targets counts (ignored or weight 0): the "
                       "mean is 0/0");
    LAUNCH(reduce_rows<T>, dim3(1), dim3(ROW_THREADS), 0, stream, rows, mean, (const T *)loss,
           (const T *)weight, (T *)divisor, (T *)y, question);
    *counted = !mean || rows > 0;
    return launched("cross_entropy");
}

/* What backward reads for all rows. */
template <class T> struct backward_arguments {
    plan<T> p;
    const T *max, *inverse, *weight, *dy, *divisor;
    int64_t step;
    bool fresh;
};

/* loss = -sum_v w_v t_v log softmax(x)_v; dx may be x. For an id t_v is 1 at the id and else 0. */
template <class T, int GROUP>
__global__ void backward_rows(int64_t rows, int64_t V, backward_arguments<T> b, const T *x, T *dx)
{
    const row_group<GROUP> group;
    const int64_t r = group.row;
    if (r >= rows)
        return;
    x += r * V;
    dx += r * V;
    const plan<T> &p = b.p;
    const int32_t id = p.ids ? p.ids[r] : 0;
    if (id < 0 || id >= V) {
        for (int64_t v = group.lane; b.fresh && v < V; v += GROUP)
            dx[v] = 0;
        return;
    }
    const T *t = p.t ? p.t + r * V : nullptr;
    const T g = b.dy[r * b.step] / (b.divisor ? *b.divisor : 1), max = b.max[r];
    const T W = p.keep * b.weight[r] + p.spread_weight(); /* sum_v w_v t_v, smoothed */
    for (int64_t v = group.lane; v < V; v += GROUP) {
        T softmax = real_exp(x[v] - max) * b.inverse[r];
        T target = (t ? p.keep * t[v] : p.ids && v == id ? p.keep : 0) + p.spread;
        dx[v] = before(b.fresh, dx[v]) + g * (W * softmax - p.weight(v) * target);
    }
}

template <class T>
bool backward(const struct cross_entropy_targets *targets, const void *x,
              const struct cross_entropy_found *found, const struct cross_entropy_dy *d, bool fresh,
              void *dx)
{
    const scratch room("cross_entropy", sizeof(T));
    if (!room)
        return false;
    const backward_arguments<T> arguments = {make_plan<T>(targets, room),
                                             (const T *)found->max,
                                             (const T *)found->inverse,
                                             (const T *)found->weight,
                                             (const T *)d->dy,
                                             (const T *)d->divisor,
                                             d->step,
                                             fresh};
    LAUNCH_ROWS(backward_rows, T, targets->rows, targets->V, arguments, (const T *)x, (T *)dx);
    return launched("cross_entropy");
}

} // namespace

KERNELS(cross_entropy, find_bad_id<T>, find_bad_weight<T>, forward<T>, reduce<T>, backward<T>);
