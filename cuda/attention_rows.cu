/* Recomputes rows of the weights of tiled attention, and of their gradient. */
#include "cuda/attention_steps.cuh"
#include "cuda/attention_tiled.cuh"

namespace
{

/* One tile of the requested rows, (B, H, count, Lk), from query `first` on: weights from f, or
   their gradient from g. */
template <class T>
__global__ void make_rows(attention a, attention_tiled f, attention_tiled_backward g, bool weights,
                          int64_t first, int64_t count, T *to)
{
    typedef real_of<T> real;
    SHARED(tile_memory<real>, m);
    const int64_t across = tile_count(a.Lk), down = tile_count(count);
    const int64_t head = blockIdx.x / across / down;
    const tile_place t = {head / a.H, head % a.H, first + blockIdx.x / across % down * TILE,
                          blockIdx.x % across * TILE};
    tile_keep(m, a, t);
    real x[4][PAIRS];
    if (weights) {
        const tile_operands<T> of(a, t, f.q, f.k, f.v, f.y);
        tile_weights(m, a, t, of, (const T *)f.bias, (const real *)f.stats, x);
    } else {
        const tile_operands<T> of(a, t, g.q, g.k, g.v, g.dy);
        if (a.dropout.threshold > 0)
            tile_stay(m, a, t);
        tile_weight_gradient(m, a, of, x);
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < PAIRS; c++) {
            const int64_t i = t.i - first + tile_row(r), j = t.j + tile_column(c);
            if (i < count && j < a.Lk)
                to[(head * count + i) * a.Lk + j] =
                    (T)(tile_keeps(m, tile_row(r), tile_column(c)) ? x[r][c] : 0);
        }
}

} // namespace

template <class T>
bool attention_tiles_rows(const attention *a, const attention_tiled *f,
                          const attention_tiled_backward *g, int64_t first, int64_t count, void *to)
{
    const int64_t blocks = a->B * a->H * tile_count(count) * tile_count(a->Lk);
    if (blocks > 0)
        LAUNCH((make_rows<T>), dim3((unsigned)blocks), dim3(TILE_THREADS), 0, stream, *a,
               f ? *f : attention_tiled(), g ? *g : attention_tiled_backward(), f != nullptr, first,
               count, (T *)to);
    return launched("attention");
}

template bool attention_tiles_rows<float>(const attention *, const attention_tiled *,
                                          const attention_tiled_backward *, int64_t, int64_t,
                                          void *);
template bool attention_tiles_rows<double>(const attention *, const attention_tiled *,
                                           const attention_tiled_backward *, int64_t, int64_t,
                                           void *);
template bool attention_tiles_rows<bf16>(const attention *, const attention_tiled *,
                                         const attention_tiled_backward *, int64_t, int64_t,
                                         void *);
