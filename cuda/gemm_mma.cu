/*
 * The product by rows of bf16, on tensor cores (gemm_by_row of cuda/gemm.cuh). A block computes a
 * tile of C, each warp a part of it: while it multiplies some columns of op(A) by rows of op(B),
 * cp.async loads the next ones.
 *
 * An element is the sum of its k terms in order, 16 at a time, in every tile. So the tile can be
 * chosen by the size of C, and no row depends on the others.
 */
#include "cuda/fragments.cuh"
#include "cuda/gemm_by_row.cuh"
#include "cuda/pack.cuh"

namespace
{

/* A tile of C, of whose rows a warp computes M fragments of 16 and of whose columns N of 8. It
   loads DEPTH terms at a time, into one of several buffers. */
template <int TILE_ROWS, int TILE_COLUMNS, int FRAGMENTS_DOWN, int FRAGMENTS_ACROSS, int TERMS,
          int COUNT>
struct mma_tile {
    enum {
        ROWS = TILE_ROWS,
        COLUMNS = TILE_COLUMNS,
        M = FRAGMENTS_DOWN,
        N = FRAGMENTS_ACROSS,
        DEPTH = TERMS,
        BUFFERS = COUNT,
        ACROSS = COLUMNS / (8 * N), /* warps */
        THREADS = WARP * ACROSS * (ROWS / (16 * M))
    };
};

/* The first does most for each number that it reads; the second gives more tiles; the third is for
   few rows, where reading B takes most of the time, so that it has most copies under way. */
typedef mma_tile<128, 128, 2, 8, 32, 2> wide_tile;
typedef mma_tile<64, 64, 2, 4, 32, 3> small_tile;
typedef mma_tile<16, 32, 1, 2, 64, 4> strip_tile;

/*
 * Loads LINES rows of A or columns of B, the next DEPTH terms at each call, with zeros beyond the
 * last line and the last term. cp.async reads eight terms of a line at a time, if these are
 * adjacent and aligned; otherwise numbers are read one by one.
 */
template <class Tile, int LINES> class line_loader
{
    enum { DEPTH = Tile::DEPTH, CHUNKS = DEPTH / 8, STEP = Tile::THREADS / CHUNKS };
    const int64_t step, depth_step; /* to the next line, to the next term */
    const bool whole;
    const int count, line, term; /* lines that exist; of this thread's first eight numbers */
    int64_t left;
    const bf16 *from;

    __device__ void load_whole(bf16 *to)
    {
        const int lines = term < left ? count - line : 0;
        const bf16 *next = from;
        to += line * PITCH<DEPTH> + term;
#pragma unroll
        for (int i = 0; i < LINES; i += STEP) {
            cp_async_if<16>(i < lines, to + i * PITCH<DEPTH>, next);
            next += STEP * step;
        }
    }
    /* Adjacent threads read adjacent numbers. */
    __device__ void load_any(bf16 *to)
    {
#pragma unroll 1
        for (int e = threadIdx.x; e < LINES * DEPTH; e += Tile::THREADS) {
            const int i = depth_step == 1 ? e / DEPTH : e % LINES;
            const int p = depth_step == 1 ? e % DEPTH : e / LINES;
            to[i * PITCH<DEPTH> + p] =
                i < count && p < left ? from[i * step + p * depth_step] : bf16(0.0f);
        }
    }

  public:
    /* From line `first` of `lines` on; x has k terms in each. `along`: lines are adjacent in x,
       instead of terms. */
    __device__ line_loader(const bf16 *x, int64_t first, int64_t lines, int64_t k, int64_t ld,
                           bool along)
        : step(along ? 1 : ld), depth_step(along ? ld : 1),
          whole(!along && k % 8 == 0 && ld % 8 == 0 && (uintptr_t)x % 16 == 0),
          count(lines - first < LINES ? (int)(lines - first) : LINES), line(threadIdx.x / CHUNKS),
          term(threadIdx.x % CHUNKS * 8), left(k),
          from(x + (whole ? first + line : first) * step + (whole ? term : 0))
    {
    }
    __device__ void load(bf16 *to)
    {
        if (whole)
            load_whole(to);
        else
            load_any(to);
        from += DEPTH * depth_step;
        left -= DEPTH;
    }
};

/* A warp's part of a tile. */
template <class Tile> struct warp_sums {
    const int row, column;
    float sum[Tile::M][Tile::N][4] = {};

    __device__ warp_sums()
        : row(threadIdx.x / WARP / Tile::ACROSS * 16 * Tile::M),
          column(threadIdx.x / WARP % Tile::ACROSS * 8 * Tile::N)
    {
    }
    __device__ void add_products(const bf16 *a, const bf16 *b)
    {
#pragma unroll
        for (int chunk = 0; chunk < Tile::DEPTH / 8; chunk += 2) {
            uint32_t x[Tile::M][4];
#pragma unroll
            for (int m = 0; m < Tile::M; m++)
                load_a<Tile::DEPTH>(x[m], a, row + 16 * m, chunk);
#pragma unroll
            for (int n = 0; n < Tile::N; n += 2) {
                uint32_t y[4];
                load_b<Tile::DEPTH>(y, b, column + 8 * n, chunk);
#pragma unroll
                for (int m = 0; m < Tile::M; m++)
                    multiply_add(sum[m][n], sum[m][n + 1], x[m], y);
            }
        }
    }
    /* c, of which `rows` rows and `columns` columns exist, becomes the sums + beta c. */
    template <class C>
    __device__ void store(int64_t rows, int64_t columns, float beta, C *c, int64_t ldc) const
    {
        typedef pack<float, 2> two;
#pragma unroll
        for (int i = 0; i < Tile::M * Tile::N * 2; i++) {
            const int m = i / 2 / Tile::N, n = i / 2 % Tile::N, half = i % 2;
            const int r = row + 16 * m + lane_group() + 8 * half;
            const int q = column + 8 * n + 2 * lane_part();
            if (r >= rows || q >= columns)
                continue;
            C *const to = c + r * ldc + q;
            two y = {{sum[m][n][2 * half], sum[m][n][2 * half + 1]}};
            if (beta != 0) {
                const two old = two::load(to, columns - q);
                y.of[0] += beta * old.of[0];
                y.of[1] += beta * old.of[1];
            }
            y.store(to, columns - q);
        }
    }
};

/* The tile of C from (row, column) on. */
template <class C, class Tile>
__device__ void multiply_tile(const by_row_arguments<bf16, C> &f, const bf16 *a, const bf16 *b,
                              C *c, int64_t row, int64_t column)
{
    typedef bf16 panels[Tile::ROWS + Tile::COLUMNS][PITCH<Tile::DEPTH>];
    SHARED_ALIGNED(16, panels, buffer, [Tile::BUFFERS]);
    const gemm_shape &s = f.s;
    line_loader<Tile, Tile::ROWS> rows(a, row, s.m, s.k, s.lda, s.transpose_a);
    line_loader<Tile, Tile::COLUMNS> columns(b, column, s.n, s.k, s.ldb, !s.transpose_b);
    warp_sums<Tile> sums;
    const auto load = [&](int to) {
        rows.load(buffer[to][0]);
        columns.load(buffer[to][Tile::ROWS]);
        cp_async_commit();
    };
    __syncthreads(); /* the products of the block's last tile are done */
    for (int ahead = 0; ahead < Tile::BUFFERS - 1; ahead++)
        load(ahead);
    int at = 0, next = Tile::BUFFERS - 1;
    for (int64_t p = 0; p < s.k; p += Tile::DEPTH) {
        cp_async_wait<Tile::BUFFERS - 2>();
        __syncthreads();
        load(next);
        sums.add_products(buffer[at][0], buffer[at][Tile::ROWS]);
        next = at;
        at = at + 1 < Tile::BUFFERS ? at + 1 : 0;
    }
    sums.store(s.m - row, s.n - column, f.beta, c + row * s.ldc + column, s.ldc);
}

template <class C, class Tile>
__global__ void __launch_bounds__(Tile::THREADS) multiply(by_row_arguments<bf16, C> f)
{
    for_each_tile<Tile>(f, [&](const bf16 *a, const bf16 *b, C *c, int64_t row, int64_t column) {
        multiply_tile<C, Tile>(f, a, b, c, row, column);
    });
}

template <class C, class Tile> bool queue(const char *operation, const by_row_arguments<bf16, C> &f)
{
    LAUNCH((multiply<C, Tile>), dim3(tile_blocks<Tile>(f.s, f.batch)), dim3(Tile::THREADS), 0,
           stream, f);
    return launched(operation);
}

} // namespace

template <class C>
bool gemm_on_tensor_cores(const char *operation, const by_row_arguments<bf16, C> &f)
{
    if (f.s.m <= 2 * strip_tile::ROWS)
        return queue<C, strip_tile>(operation, f);
    return tiles_of<wide_tile>(f.s, f.batch) >= ENOUGH_TILES ? queue<C, wide_tile>(operation, f)
                                                             : queue<C, small_tile>(operation, f);
}

template bool gemm_on_tensor_cores<bf16>(const char *, const by_row_arguments<bf16, bf16> &);
template bool gemm_on_tensor_cores<float>(const char *, const by_row_arguments<bf16, float> &);
