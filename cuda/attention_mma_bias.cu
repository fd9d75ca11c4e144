/* The gradient of the bias in the backward of tiled attention, on tensor cores: dbias += ds, summed
   in double over the axes on which the bias is broadcast. */
#include "cuda/attention.cuh"
#include "cuda/attention_mma_scores.cuh"

namespace
{

/* The scores that contribute to one tile of SIZE x SIZE of the bias, which one block sums: a range
   along each axis. */
template <int SIZE> struct bias_region {
    int64_t from[2], to[2]; /* sentences, heads */
    int64_t i, queries_end, j, keys_end;

    static __host__ __device__ int64_t tiles(int64_t n)
    {
        return (n + SIZE - 1) / SIZE;
    }

    /* The number of regions, with one block for each. */
    static int64_t count(const attention &a)
    {
        return (a.bias[0] ? a.B : 1) * (a.bias[1] ? a.H : 1) * (a.bias[2] ? tiles(a.Lq) : 1) *
               (a.bias[3] ? tiles(a.Lk) : 1);
    }

    __device__ bias_region(const attention &a, int64_t block)
    {
        const int64_t J = a.bias[3] ? tiles(a.Lk) : 1, I = a.bias[2] ? tiles(a.Lq) : 1;
        const int64_t H = a.bias[1] ? a.H : 1;
        const int64_t b = block / J / I / H, h = block / J / I % H;
        from[0] = b;
        to[0] = a.bias[0] ? b + 1 : a.B;
        from[1] = h;
        to[1] = a.bias[1] ? h + 1 : a.H;
        i = block / J % I * SIZE;
        queries_end = a.bias[2] ? smaller(i + SIZE, a.Lq) : a.Lq;
        j = block % J * SIZE;
        keys_end = a.bias[3] ? smaller(j + SIZE, a.Lk) : a.Lk;
    }

    /* Sums a tile along the axes on which the bias is broadcast, and stores the result. */
    template <class T, int THREADS_OF_BLOCK>
    __device__ void store(const attention &a, double (*sum)[SIZE + 1],
                          attention_gradient dbias) const
    {
        const int64_t queries = a.bias[2] ? queries_end - i : 1;
        const int64_t keys = a.bias[3] ? keys_end - j : 1;
        T *to_place = (T *)dbias.data + from[0] * a.bias[0] + from[1] * a.bias[1] + i * a.bias[2] +
                      j * a.bias[3];
        for (int64_t n = threadIdx.x; n < queries * keys; n += THREADS_OF_BLOCK) {
            const int64_t r = n / keys, c = n % keys;
            double total = 0;
            for (int64_t row = r; row < (a.bias[2] ? r + 1 : (int64_t)SIZE); row++)
                for (int64_t column = c; column < (a.bias[3] ? c + 1 : (int64_t)SIZE); column++)
                    total += sum[row][column];
            T &place = to_place[r * a.bias[2] + c * a.bias[3]];
            place = (T)((real_of<T>)total + before(dbias.fresh, place));
        }
    }
};

/* One block for each tile of the bias. */
template <int D>
struct bias_shape : mma_shape<D, /* warps */ D <= 128 ? 4 : 2, /* fragments */ 1,
                              /* columns */ D <= 128 ? 64 : 32> {
};

template <class S> struct bias_memory {
    bf16 q[S::ROWS * PITCH<S::D>], dy[S::ROWS * PITCH<S::D>], k[S::COLUMNS * PITCH<S::D>],
        v[S::COLUMNS * PITCH<S::D>];
    pair_bits<S::ROWS, S::COLUMNS> bits;
    query_rows<S::ROWS> rows;
    double sum[S::ROWS][S::COLUMNS + 1];
};

template <class S>
__device__ void load_tile(bias_memory<S> &m, const attention &a, const attention_tiled_backward &g,
                          const tile_place &t, tile_kind kind, const key_band &band, bool aligned)
{
    const tile_operands<bf16> of(a, t, g.q, g.k, g.v, g.dy);
    __syncthreads(); /* no thread reads the previous tile any more */
    load_rows<S::D, S::ROWS, S::THREADS>(m.q, of.q, a.Lq - t.i, a.D, aligned);
    load_rows<S::D, S::ROWS, S::THREADS>(m.dy, of.dy, a.Lq - t.i, a.Dv, aligned);
    load_rows<S::D, S::COLUMNS, S::THREADS>(m.k, of.k, a.Lk - t.j, a.D, aligned);
    load_rows<S::D, S::COLUMNS, S::THREADS>(m.v, of.v, a.Lk - t.j, a.Dv, aligned);
    set_bits<S::THREADS>(m.bits, a, band, t, kind, a.dropout.threshold > 0);
    for (int r = threadIdx.x; r < S::ROWS; r += S::THREADS)
        m.rows.set(r, numbers_of(a, g, t.b, t.h, t.i + r, true), base2_factor(a, g.bias));
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
}

/* sum += ds of a tile; a pair always belongs to the same lane. */
template <class S>
__device__ void add_tile(bias_memory<S> &m, const attention &a, const attention_tiled_backward &g,
                         const tile_place &t, tile_kind kind)
{
    const int first = threadIdx.x / WARP * S::WARP_ROWS;
    const tile_rows<bf16> of = {m.q, m.dy, m.k, m.v};
#pragma unroll 1
    for (int column = 0; column < S::COLUMNS; column += 32) {
        if (kind != WHOLE && !any_kept<S::M>(m.bits, first, column))
            continue;
        float ds[S::M][4][4];
        score_gradient<true, S::D, S::M, false>(of, {}, a, g, t, first, column, m.rows, m.bits,
                                                kind == WHOLE, ds);
        for (int n = 0; n < 4; n++)
            for (int e = 0; e < 4; e++)
                m.sum[first + lane_group() + e / 2 * 8][column + 8 * n + 2 * lane_part() + e % 2] +=
                    (double)ds[0][n][e];
    }
}

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    bias_gradient(attention a, attention_tiled_backward g, bool aligned)
{
    DYNAMIC_SHARED(bias_memory<S>, m);
    const bias_region<S::ROWS> region(a, blockIdx.x);
    for (int n = threadIdx.x; n < S::ROWS * S::COLUMNS; n += S::THREADS)
        m->sum[n / S::COLUMNS][n % S::COLUMNS] = 0;
    for (int64_t b = region.from[0]; b < region.to[0]; b++) {
        key_band band;
        band.set(a, b, g.bias);
        for (int64_t h = region.from[1]; h < region.to[1]; h++)
            for (int64_t i = region.i; i < region.queries_end; i += S::ROWS)
                for (int64_t j = region.j; j < region.keys_end; j += S::COLUMNS) {
                    const tile_place t = {b, h, i, j};
                    const tile_kind kind = kind_of<OWNS_PAIRS, S::ROWS, S::COLUMNS>(a, band, t);
                    if (kind == NOTHING)
                        continue;
                    load_tile(*m, a, g, t, kind, band, aligned);
                    add_tile(*m, a, g, t, kind);
                }
    }
    __syncthreads();
    if (g.part)
        region.template store<float, S::THREADS>(a, m->sum, g.dbias);
    else
        region.template store<bf16, S::THREADS>(a, m->sum, g.dbias);
}

template <int D>
void launch_bias(const attention &a, const attention_tiled_backward &g, bool aligned)
{
    typedef bias_shape<D> S;
    const int64_t blocks = bias_region<S::ROWS>::count(a);
    if (blocks > 0)
        LAUNCH((bias_gradient<S>), dim3((unsigned)blocks), dim3(S::THREADS), sizeof(bias_memory<S>),
               stream, a, g, aligned);
}

} // namespace

bool attention_mma_bias_fits(const attention &a)
{
    return with_head_size(a, [](auto D) {
        typedef bias_shape<D()> S;
        return block_fits<bias_memory<S>, bias_gradient<S>>();
    });
}

void attention_mma_bias(const attention &a, const attention_tiled_backward &g, bool aligned)
{
    with_head_size(a, [&](auto D) { launch_bias<D()>(a, g, aligned); });
}
