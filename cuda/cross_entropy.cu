#include "cuda/ids.cuh"
#include "cuda/row_exp.cuh"
#include "ops/loss.h"

namespace
{

int64_t pitch_of(const struct cross_entropy_targets *t)
{
    return t->pitch ? t->pitch : t->V;
}

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
    LAUNCH_EACH(V, look_at_weights<T>, V, (const T *)class_weight, question);
    launched("cross_entropy");
    return -1;
}

/* Targets in the type of arithmetic. */
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
__device__ real_of<T> smoothing_loss(const row_group<GROUP> &group, const plan<real_of<T>> &p,
                                     int64_t V, const T *x, real_of<T> max, real_of<T> log_sum)
{
    real_of<T> sum = 0;
    for (int64_t v = group.lane; v < V; v += GROUP)
        sum += p.weight(v) * ((real_of<T>)x[v] - max);
    return p.spread_weight() * log_sum - p.spread * group.sum(sum);
}

/* The part of the target, and its weight. */
template <class T, int GROUP>
__device__ real_of<T> target_loss(const row_group<GROUP> &group, const plan<real_of<T>> &p,
                                  int64_t V, const T *x, real_of<T> max, real_of<T> log_sum,
                                  real_of<T> &weight)
{
    typedef real_of<T> real;
    const real *t = p.t + group.row * V;
    real sum = 0, sum_weight = 0;
    for (int64_t v = group.lane; v < V; v += GROUP) {
        real share = p.weight(v) * t[v], term = share * (log_sum - ((real)x[v] - max));
        sum_weight += share;
        sum += share == 0 ? 0 : term; /* 0 log 0 is 0 */
    }
    weight = group.sum(sum_weight);
    return p.keep * group.sum(sum);
}

template <class T, int GROUP>
__device__ real_of<T> row_loss(const row_group<GROUP> &group, const plan<real_of<T>> &p, int64_t V,
                               int32_t id, const T *x, real_of<T> max, real_of<T> log_sum,
                               real_of<T> &weight)
{
    real_of<T> loss;
    if (p.t) {
        loss = target_loss(group, p, V, x, max, log_sum, weight);
    } else {
        weight = p.weight(id);
        loss = weight == 0 ? 0 : p.keep * weight * (log_sum - ((real_of<T>)x[id] - max));
    }
    if (p.spread == 0) /* avoids 0 times an infinite x_v */
        return loss;
    return loss + smoothing_loss(group, p, V, x, max, log_sum);
}

/* cross_entropy_found in the type of arithmetic. */
template <class T> struct found_in_rows {
    T *max, *inverse, *loss, *weight;
};

/* An id >= V has been reported; its row has no loss. */
template <class T, int GROUP>
__global__ void forward_rows(int64_t rows, int64_t V, int64_t pitch, plan<real_of<T>> p, const T *x,
                             found_in_rows<real_of<T>> found)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int32_t id = p.ids ? p.ids[group.row] : 0;
    real max = 0, inverse = 0, weight = 0, loss = id < 0 ? 0 : (real)NAN;
    const bool aligned = whole_packs(pitch, x);
    x += group.row * pitch;
    if (id >= 0 && id < V) {
        const auto row = row_max_and_sum(group, V, x, aligned);
        max = row.max;
        inverse = 1 / row.sum;
        loss = row_loss(group, p, V, id, x, max, real_log(row.sum), weight);
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
    typedef real_of<T> real;
    const scratch room("cross_entropy", sizeof(real));
    if (!room)
        return false;
    const plan<real> p = make_plan<real>(targets, room);
    const found_in_rows<real> places = {(real *)found->max, (real *)found->inverse,
                                        (real *)found->loss, (real *)found->weight};
    LAUNCH_ROWS(forward_rows, T, targets->rows, targets->V, pitch_of(targets), p, (const T *)x,
                places);
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
    int64_t step, pitch;
    bool fresh;
};

/* What the targets of a piece of row r subtract from it: share keep w t + share spread w. */
template <class real, class Lane, class Values>
__device__ void subtract_targets(const plan<real> &p, int64_t V, int64_t r, int64_t v, real share,
                                 const Lane &lane, Values &part)
{
    const bool given = p.t != nullptr;
    lane.each_inside([&](int n) {
        const int64_t at = v + lane.column(n);
        const real target = p.keep * (given ? p.t[r * V + at] : 0) + p.spread;
        part[n] -= share * p.weight(at) * target;
    });
}

/* loss = -sum_v w_v t_v log softmax(x)_v; dx may be x. For an id t_v is 1 at the id and else 0. */
template <class T, int GROUP>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS<T, true>)
    backward_rows(int64_t rows, int64_t V, backward_arguments<real_of<T>> b, const T *x, T *dx)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    const int64_t r = group.row;
    if (r >= rows)
        return;
    const bool aligned = whole_packs(b.pitch, x, dx);
    x += r * b.pitch;
    dx += r * b.pitch;
    const plan<real> &p = b.p;
    const int32_t id = p.ids ? p.ids[r] : 0;
    const bool counts = id >= 0 && id < V; /* otherwise the row has no gradient */
    if (!counts && !b.fresh)
        return;
    const real g = b.dy[r * b.step] / (b.divisor ? *b.divisor : 1), max = b.max[r];
    const real W = p.keep * b.weight[r] + p.spread_weight(); /* sum_v w_v t_v, smoothed */
    const real factor = g * W * b.inverse[r], shift = p.w || p.t ? 0 : g * p.spread;
    const real of_id = p.ids && counts ? g * p.keep * p.weight(id) : 0;
    each_piece(group, V, aligned, [&](const auto &lane, int64_t v) {
        auto part = load_row<real>(lane, x + v);
        lane.each([&](int n) { part[n] = factor * exp_for<T>(part[n] - max) - shift; });
        if (p.w || p.t)
            subtract_targets(p, V, r, v, g, lane, part);
        const int at = id - (int)v; /* its column in this piece */
        if (p.ids && lane.first <= at && at < lane.first + lane.WIDTH)
            lane.each([&](int n) { part[n] -= lane.column(n) == at ? of_id : 0; });
        if (!counts)
            lane.each([&](int n) { part[n] = 0; });
        add_row(lane, part, b.fresh, dx + v);
    });
}

template <class T>
bool backward(const struct cross_entropy_targets *targets, const void *x,
              const struct cross_entropy_found *found, const struct cross_entropy_dy *d, bool fresh,
              void *dx)
{
    typedef real_of<T> real;
    const scratch room("cross_entropy", sizeof(real));
    if (!room)
        return false;
    const backward_arguments<real> arguments = {make_plan<real>(targets, room),
                                                (const real *)found->max,
                                                (const real *)found->inverse,
                                                (const real *)found->weight,
                                                (const real *)d->dy,
                                                (const real *)d->divisor,
                                                d->step,
                                                pitch_of(targets),
                                                fresh};
    LAUNCH_ROWS(backward_rows, T, targets->rows, targets->V, arguments, (const T *)x, (T *)dx);
    return launched("cross_entropy");
}

} // namespace

KERNELS_AND_BF16(cross_entropy, find_bad_id<T>, find_bad_weight<real_of<T>>, forward<T>,
                 reduce<real_of<T>>, backward<T>);
