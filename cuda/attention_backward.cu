/* The backward of composed attention, from the last step of the forward to its first. */
#include "cuda/attention_steps.cuh"

namespace
{

/*
 * m = dropout(a): da = dropout(dm), plus the gradient from other uses of the weights. a_ij =
 * exp(s_ij - max_i) / sum_j exp(s_ij - max_i), as softmax: ds_ij = a_ij (da_ij - dot_i), dot_i =
 * sum_j a_ij da_ij. dm becomes scale ds; dscores, unless NULL, receives ds for the bias.
 */
template <class T, int GROUP>
__global__ void score_gradient(int64_t rows, int64_t Lk, attention a, const T *weights, T *total,
                               bool fresh, real_of<T> *dm, real_of<T> *dscores)
{
    typedef real_of<T> real;
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const masked_row row(a.mask, {a.B, a.H, a.Lq, Lk}, group.row);
    const int64_t start = a.dropout.threshold > 0 ? place_of_row(&a.dropout.place, group.row) : 0;
    weights += group.row * Lk;
    dm += group.row * Lk;
    real dot = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const bool kept = row.keeps(j);
        real da = kept ? dm[j] : 0;
        if (kept && a.dropout.threshold > 0) {
            int64_t n = 1;
            const int64_t at = start + place_in_row(&a.dropout.place, j, &n);
            da = staying_from(a.dropout, at, 1) ? da * (real)a.dropout.scale : 0;
        }
        if (total) {
            T &sum = total[group.row * Lk + j];
            da = kept ? da + (fresh ? 0 : (real)sum) : 0;
            sum = (T)da;
        }
        dm[j] = da;
        dot += kept ? (real)weights[j] * da : 0;
    }
    dot = group.sum(dot);
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const real ds = row.keeps(j) ? (real)weights[j] * (dm[j] - dot) : 0;
        dm[j] = (real)a.scale * ds;
        if (dscores)
            dscores[group.row * Lk + j] = ds;
    }
}

/* The shape of a bias, and how many scores share each element along (B, H, Lq, Lk). */
struct bias_walk {
    int64_t size[4], kept[4];
    int64_t places;
};

bias_walk walk_of(const attention &a)
{
    bias_walk w = {{a.B, a.H, a.Lq, a.Lk}, {}, 1};
    for (int n = 0; n < 4; n++) {
        w.kept[n] = a.bias[n] ? w.size[n] : 1;
        w.places *= w.kept[n];
    }
    return w;
}

/*
 * Scores are scale s_ij + bias_ij: dbias += ds, summed over the axes on which the bias is
 * broadcast. One group of threads for each element of the bias; long sums of small numbers, so in
 * double.
 */
template <class T, int GROUP>
__global__ void sum_bias(int64_t places, int64_t terms, bias_walk w, const real_of<T> *ds,
                         bool fresh, T *dbias)
{
    const row_group<GROUP> group;
    if (group.row >= places)
        return;
    int64_t at[4], rest = group.row;
    for (int n = 3; n >= 0; n--) {
        at[n] = rest % w.kept[n];
        rest /= w.kept[n];
    }
    double sum = 0;
    for (int64_t term = group.lane; term < terms; term += GROUP) {
        int64_t left = term, place = 0, weight = 1;
        for (int n = 3; n >= 0; n--) {
            const int64_t many = w.size[n] / w.kept[n];
            place += (at[n] + left % many) * weight;
            left /= many;
            weight *= w.size[n];
        }
        sum += (double)ds[place];
    }
    sum = group.sum(sum);
    if (group.lane == 0)
        dbias[group.row] = (T)((real_of<T>)sum + (fresh ? 0 : (real_of<T>)dbias[group.row]));
}

template <class T>
bool bias_gradient(const attention &a, const real_of<T> *ds, attention_gradient dbias)
{
    const bias_walk w = walk_of(a);
    const int64_t terms = w.places > 0 ? a.B * a.H * a.Lq * a.Lk / w.places : 0;
    LAUNCH_ROWS(sum_bias, T, w.places, terms, w, ds, dbias.fresh, (T *)dbias.data);
    return launched("attention");
}

template <class T>
bool weight_gradient(const attention &a, const attention_backward *g, real_of<T> *dm)
{
    const int64_t rows = a.B * a.H * a.Lq;
    if (g->dy && !pairs<T>(a, a.Dv, g->dy, a.y, g->v, a.v, false, dm))
        return false;
    if (!g->dy && !cuda_ok(cudaMemsetAsync(dm, 0, rows * a.Lk * sizeof *dm, stream), "attention"))
        return false;
    if (rows > 0 && a.Lk > 0)
        LAUNCH_ROWS(score_gradient, T, rows, a.Lk, a, (const T *)g->weights, (T *)g->dweights.data,
                    g->dweights.fresh, dm, (real_of<T> *)g->dscores);
    return launched("attention");
}

} // namespace

template <class T> bool attention_composed_backward(const attention *a, const attention_backward *g)
{
    typedef real_of<T> real;
    const scratch memory("attention", (size_t)(a->B * a->H * a->Lq * a->Lk) * sizeof(real));
    real *const ds = memory.as<real>();
    if (!memory || !weight_gradient<T>(*a, g, ds))
        return false;
    const bool drop = a->dropout.threshold > 0;
    const pair_product<real> dq = {ds, false, g->k, a->k, g->dq.data, a->q, a->D, g->dq.fresh};
    const pair_product<real> dk = {ds, false, g->q, a->q, g->dk.data, a->k, a->D, g->dk.fresh};
    const pair_product<T> dv = {
        (const T *)g->weights, drop, g->dy, a->y, g->dv.data, a->v, a->Dv, g->dv.fresh};
    attention terms = *a;
    terms.Lq = g->dy ? a->Lq : 0; /* an empty sum */
    return (!dq.z || over_keys<T>(*a, dq)) && (!dk.z || over_queries<T>(*a, dk)) &&
           (!dv.z || over_queries<T>(terms, dv)) &&
           (!g->dbias.data || bias_gradient<T>(*a, (const real *)g->dscores, g->dbias));
}

template bool attention_composed_backward<float>(const attention *, const attention_backward *);
template bool attention_composed_backward<double>(const attention *, const attention_backward *);
template bool attention_composed_backward<bf16>(const attention *, const attention_backward *);
