/*
 * The product by rows of bf16, on tensor cores (gemm_by_row of cuda/gemm.cuh). A block computes a
 * tile of C, each warp a part of it. While it multiplies DEPTH columns of op(A) by rows of op(B),
 * cp.async loads the next ones into shared memory, and ldmatrix the next fragments into registers.
 *
 * An element is the sum of its k terms in order, 16 at a time, in every tile. So the tile can be
 * chosen by the size of C, and no row depends on the others.
 */
#include "cuda/fragments.cuh"
#include "cuda/gemm_by_row.cuh"
#include "cuda/pack.cuh"
#include <type_traits>

namespace
{

/* A tile of C, of whose rows a warp computes M fragments of 16 and of whose columns N of 8. A block
   has COUNT buffers; a multiprocessor has room for RESIDENT blocks. */
template <int TILE_ROWS, int TILE_COLUMNS, int FRAGMENTS_DOWN, int FRAGMENTS_ACROSS, int COUNT,
          int RESIDENT>
struct mma_tile {
    enum {
        ROWS = TILE_ROWS,
        COLUMNS = TILE_COLUMNS,
        M = FRAGMENTS_DOWN,
        N = FRAGMENTS_ACROSS,
        DEPTH = 64, /* terms in a buffer: a line of them is 128 bytes */
        BUFFERS = COUNT,
        BLOCKS = RESIDENT,
        ACROSS = COLUMNS / (8 * N), /* warps */
        THREADS = WARP * ACROSS * (ROWS / (16 * M))
    };
};

/* The first does most for each number that it reads; the next two give more tiles; the last is for
   few rows, where reading B takes most of the time, so that it has most copies under way. */
typedef mma_tile<128, 256, 4, 8, 3, 1> large_tile;
typedef mma_tile<128, 128, 4, 8, 3, 2> wide_tile;
typedef mma_tile<64, 64, 2, 4, 3, 4> small_tile;
typedef mma_tile<16, 32, 1, 2, 4, 4> strip_tile;

/* LINES rows of op(A) or columns of op(B), DEPTH terms of each, in shared memory as in device
   memory: a row holds the terms of a line or, `ALONG`, the lines of a term. */
template <class Tile, int COUNT, bool ALONG_LINES> struct alignas(16) panel {
    enum {
        LINES = COUNT,
        ALONG = ALONG_LINES,
        WIDTH = ALONG ? (int)LINES : (int)Tile::DEPTH,
        HEIGHT = ALONG ? (int)Tile::DEPTH : (int)LINES,
        CHUNKS = WIDTH / 8,            /* of 16 bytes, in a row */
        STEP = Tile::THREADS / CHUNKS, /* rows that a block copies at a time */
    };
    bf16 of[HEIGHT * PITCH<WIDTH>];

    /* Lines line .. line + 15 and terms 8 chunk .. 8 chunk + 15, as a fragment a or two b. */
    __device__ void as_a(uint32_t (&x)[4], int line, int chunk) const
    {
        if constexpr (ALONG)
            load_a_across<WIDTH>(x, of, 8 * chunk, line / 8);
        else
            load_a<WIDTH>(x, of, line, chunk);
    }
    __device__ void as_b(uint32_t (&y)[4], int line, int chunk) const
    {
        if constexpr (ALONG)
            load_b_across<WIDTH>(y, of, 8 * chunk, line / 8);
        else
            load_b<WIDTH>(y, of, line, chunk);
    }
};

/*
 * Fills a panel, with the next DEPTH terms at each call and zeros beyond the last line and the last
 * term. cp.async copies eight numbers of a row at a time if all are aligned; otherwise they are
 * read one by one.
 */
template <class Tile, class Panel> class loader
{
    const int64_t ld;
    const bool whole;
    const int lines; /* that exist */
    int64_t left;    /* terms */
    const bf16 *from;

    __device__ void load_whole(bf16 *to) const
    {
        const int row = threadIdx.x / Panel::CHUNKS, at = threadIdx.x % Panel::CHUNKS * 8;
        const int terms = left < Tile::DEPTH ? (int)left : (int)Tile::DEPTH;
        const int rows =
            at < (Panel::ALONG ? lines : terms) ? (Panel::ALONG ? terms : lines) - row : 0;
        const bf16 *next = from + row * ld + at;
        to += row * PITCH<Panel::WIDTH> + at;
#pragma unroll
        for (int i = 0; i < Panel::HEIGHT; i += Panel::STEP) {
            cp_async_if<16>(i < rows, to + i * PITCH<Panel::WIDTH>, next);
            next += Panel::STEP * ld;
        }
    }
    /* Adjacent threads read adjacent numbers. */
    __device__ void load_any(bf16 *to) const
    {
#pragma unroll 1
        for (int e = threadIdx.x; e < Panel::WIDTH * Panel::HEIGHT; e += Tile::THREADS) {
            const int row = e / Panel::WIDTH, at = e % Panel::WIDTH;
            const bool there = Panel::ALONG ? at < lines && row < left : row < lines && at < left;
            to[row * PITCH<Panel::WIDTH> + at] = there ? from[row * ld + at] : bf16(0.0f);
        }
    }

  public:
    /* From line `first` of `count` on; x has k terms in each. */
    __device__ loader(const bf16 *x, int64_t first, int64_t count, int64_t k, int64_t ld)
        : ld(ld), whole(((Panel::ALONG ? count : k) | ld) % 8 == 0 && (uintptr_t)x % 16 == 0),
          lines(count - first < Panel::LINES ? (int)(count - first) : (int)Panel::LINES), left(k),
          from(x + first * (Panel::ALONG ? 1 : ld))
    {
    }
    __device__ void load(Panel &to)
    {
        if (whole)
            load_whole(to.of);
        else
            load_any(to.of);
        from += Tile::DEPTH * (Panel::ALONG ? ld : 1);
        left -= Tile::DEPTH;
    }
};

/* A warp's operands of a step: 16 terms. */
template <class Tile> struct warp_terms {
    uint32_t a[Tile::M][4], b[Tile::N / 2][4];
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
    template <class A, class B>
    __device__ void load(warp_terms<Tile> &terms, const A &a, const B &b, int step) const
    {
#pragma unroll
        for (int m = 0; m < Tile::M; m++)
            a.as_a(terms.a[m], row + 16 * m, 2 * step);
#pragma unroll
        for (int n = 0; n < Tile::N; n += 2)
            b.as_b(terms.b[n / 2], column + 8 * n, 2 * step);
    }
    __device__ void add_products(const warp_terms<Tile> &terms)
    {
#pragma unroll
        for (int n = 0; n < Tile::N; n += 2)
#pragma unroll
            for (int m = 0; m < Tile::M; m++)
                multiply_add(sum[m][n], sum[m][n + 1], terms.a[m], terms.b[n / 2]);
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

/* The panels of a tile, and how they are filled. */
template <class Tile, bool ALONG_A, bool ALONG_B> class panels
{
    typedef panel<Tile, Tile::ROWS, ALONG_A> panel_a;
    typedef panel<Tile, Tile::COLUMNS, ALONG_B> panel_b;
    loader<Tile, panel_a> load_a;
    loader<Tile, panel_b> load_b;
    int next = 0; /* to be filled */

  public:
    typedef Tile tile;
    struct buffer {
        panel_a a;
        panel_b b;
    } *const of;
    struct memory {
        buffer of[Tile::BUFFERS];
    };

    __device__ panels(memory *m, const gemm_shape &s, const bf16 *a, const bf16 *b, int64_t row,
                      int64_t column)
        : load_a(a, row, s.m, s.k, s.lda), load_b(b, column, s.n, s.k, s.ldb), of(m->of)
    {
    }
    __device__ static int after(int i)
    {
        return i + 1 < Tile::BUFFERS ? i + 1 : 0;
    }
    /* Starts to fill the next buffer. */
    __device__ void load()
    {
        load_a.load(of[next].a);
        load_b.load(of[next].b);
        cp_async_commit();
        next = after(next);
    }
    /* Waits until only the last PENDING buffers are being filled, and until all threads have read
       the fragments that they have asked for. */
    template <int PENDING = Tile::BUFFERS - 2> __device__ void wait() const
    {
        cp_async_wait<PENDING>();
        __syncthreads();
    }
};

/* The tile of C from (row, column) on. */
template <class C, class Panels>
__device__ void multiply_tile(const by_row_arguments<bf16, C> &f, typename Panels::memory *memory,
                              const bf16 *a, const bf16 *b, C *c, int64_t row, int64_t column)
{
    typedef typename Panels::tile Tile;
    enum { STEPS = Tile::DEPTH / 16 };
    Panels panels(memory, f.s, a, b, row, column);
    warp_sums<Tile> sums;
    warp_terms<Tile> terms[2];
    for (int ahead = 0; ahead < Tile::BUFFERS - 1; ahead++)
        panels.load();
    panels.wait();
    int at = 0;
    sums.load(terms[0], panels.of[at].a, panels.of[at].b, 0);
    for (int64_t p = 0; p < f.s.k; p += Tile::DEPTH) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            if (step == STEPS - 1) {
                panels.wait();
                at = Panels::after(at);
            }
            sums.load(terms[(step + 1) % 2], panels.of[at].a, panels.of[at].b, (step + 1) % STEPS);
            if (step == 0)
                panels.load();
            sums.add_products(terms[step % 2]);
        }
    }
    panels.template wait<0>(); /* the next tile of the block fills the buffers again */
    sums.store(f.s.m - row, f.s.n - column, f.beta, c + row * f.s.ldc + column, f.s.ldc);
}

template <class C, class Panels>
__global__ void __launch_bounds__(Panels::tile::THREADS, Panels::tile::BLOCKS)
    multiply(by_row_arguments<bf16, C> f)
{
    DYNAMIC_SHARED(typename Panels::memory, memory);
    for_each_tile<typename Panels::tile>(
        f, [&](const bf16 *a, const bf16 *b, C *c, int64_t row, int64_t column) {
            multiply_tile<C, Panels>(f, memory, a, b, c, row, column);
        });
}

/* False where the device has too little shared memory for the panels; then smaller tiles fit. */
template <class C, class Panels> bool queue_with(const by_row_arguments<bf16, C> &f)
{
    typedef typename Panels::tile Tile;
    const int bytes = (int)sizeof(typename Panels::memory);
    static const bool fits =
        cudaFuncSetAttribute(multiply<C, Panels>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes) == cudaSuccess ||
        cudaGetLastError() == cudaSuccess; /* which forgets the error */
    if (fits)
        LAUNCH((multiply<C, Panels>), dim3(tile_blocks<Tile>(f.s, f.batch)), dim3(Tile::THREADS),
               bytes, stream, f);
    return fits;
}

template <class C, class Tile> bool queue(const by_row_arguments<bf16, C> &f)
{
    if (f.s.transpose_a)
        return f.s.transpose_b ? queue_with<C, panels<Tile, true, false>>(f)
                               : queue_with<C, panels<Tile, true, true>>(f);
    return f.s.transpose_b ? queue_with<C, panels<Tile, false, false>>(f)
                           : queue_with<C, panels<Tile, false, true>>(f);
}

/* Whether most rows of these tiles exist, and enough tiles. */
template <class Tile, class C> bool suits(const by_row_arguments<bf16, C> &f)
{
    return f.s.m > Tile::ROWS / 2 && tiles_of<Tile>(f.s, f.batch) >= ENOUGH_TILES;
}

} // namespace

template <class C>
bool gemm_on_tensor_cores(const char *operation, const by_row_arguments<bf16, C> &f)
{
    if (!(suits<large_tile>(f) && queue<C, large_tile>(f)) &&
        !(suits<wide_tile>(f) && queue<C, wide_tile>(f)) &&
        !(suits<small_tile>(f) && queue<C, small_tile>(f)))
        queue<C, strip_tile>(f);
    return launched(operation);
}

template bool gemm_on_tensor_cores<bf16>(const char *, const by_row_arguments<bf16, bf16> &);
template bool gemm_on_tensor_cores<float>(const char *, const by_row_arguments<bf16, float> &);
