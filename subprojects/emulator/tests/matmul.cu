/*
 * C = A B on tensor cores, A and B in bf16, C in float: a block of four warps computes 64 x 64
 * elements of C, each warp 32 x 32. While it multiplies one slice of A and B (32 deep), cp.async
 * loads the next.
 */
#include "check.cuh"
#include <tensor_core.cuh>

const int Tile = 64, Depth = 32, Threads = 128;

struct Slices {
    __nv_bfloat16 a[Tile][Depth + 8], b[Depth][Tile + 8]; /* 8 more: rows use different banks */
};

static __device__ void load(Slices &to, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int n,
                            int k, int start)
{
    for (int i = threadIdx.x; i < Tile * Depth / 8; i += Threads) {
        int row = i / (Depth / 8), column = i % (Depth / 8) * 8;
        cp_async16(&to.a[row][column], a + static_cast<size_t>(row) * k + start + column);
    }
    for (int i = threadIdx.x; i < Tile * Depth / 8; i += Threads) {
        int row = i / (Tile / 8), column = i % (Tile / 8) * 8;
        cp_async16(&to.b[row][column], b + static_cast<size_t>(start + row) * n + column);
    }
    cp_async_commit();
}

/* Adds the product of both slices to this warp's part of C: 2 x 4 fragments of 16 x 8. */
static __device__ void multiply(const Slices &from, float (&sum)[2][4][4], int row, int column)
{
    const int lane = threadIdx.x % 32;
    for (int k = 0; k < Depth; k += 16) {
        uint32_t a[2][4], b[2][4]; /* b[j]: fragments 2 j and 2 j + 1 */
        for (int i = 0; i < 2; i++)
            ldmatrix_x4(a[i], &from.a[row + i * 16 + lane % 16][k + lane / 16 * 8]);
        for (int j = 0; j < 2; j++)
            ldmatrix_x4_trans(b[j], &from.b[k + lane % 16][column + j * 16 + lane / 16 * 8]);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 4; j++) {
                const uint32_t *both = b[j / 2] + j % 2 * 2;
                const uint32_t fragment[2] = {both[0], both[1]};
                mma_m16n8k16_bf16(sum[i][j], a[i], fragment);
            }
    }
}

static __device__ void store(const float (&sum)[2][4][4], float *c, int n, int row, int column)
{
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int r = row + i * 16 + lane / 4 + e / 2 * 8;
                c[static_cast<size_t>(r) * n + column + j * 8 + lane % 4 * 2 + e % 2] =
                    sum[i][j][e];
            }
}

__global__ void __launch_bounds__(Threads)
    matmul(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k)
{
    SHARED_ALIGNED(16, Slices, slices, [2]);
    const int warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 32;
    float sum[2][4][4] = {};
    a += static_cast<size_t>(blockIdx.y) * Tile * k;
    b += blockIdx.x * Tile;
    c += static_cast<size_t>(blockIdx.y) * Tile * n + blockIdx.x * Tile;
    load(slices[0], a, b, n, k, 0);
    for (int start = 0, now = 0; start < k; start += Depth, now ^= 1) {
        if (start + Depth < k) {
            load(slices[now ^ 1], a, b, n, k, start + Depth);
#ifdef PLANTED_WRONG_WAIT
            cp_async_wait<2>();
#else
            cp_async_wait<1>(); /* the slice before the last one has arrived */
#endif
        } else {
            cp_async_wait<0>();
        }
        __syncthreads();
        multiply(slices[now], sum, row, column);
#ifndef PLANTED_NO_BARRIER_AFTER_MULTIPLY
        __syncthreads(); /* before the next load overwrites the slice */
#endif
    }
    store(sum, c, n, row, column);
}

/* One fragment product through the x2 loads: b's rows are its columns, so no transposition. */
__global__ void one_fragment(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, bool trans)
{
    SHARED_ALIGNED(16, __nv_bfloat16, left, [16][16]);
    SHARED_ALIGNED(16, __nv_bfloat16, right, [16][16]);
    const int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        left[i / 16][i % 16] = a[i];
    for (int i = lane; i < 128; i += 32)
        if (trans)
            right[i / 8][i % 8] = b[i];
        else
            right[i % 8][i / 8] = b[i];
    __syncwarp();
    uint32_t fa[4], fb[2];
    float sum[4] = {};
    ldmatrix_x4(fa, &left[lane % 16][lane / 16 * 8]);
    if (trans)
        ldmatrix_x2_trans(fb, &right[lane % 16][0]);
    else
        ldmatrix_x2(fb, &right[lane % 8][lane / 8 % 2 * 8]);
    mma_m16n8k16_bf16(sum, fa, fb);
    for (int e = 0; e < 4; e++)
        c[(lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2] = sum[e];
}

static std::vector<__nv_bfloat16> rounded(const std::vector<float> &numbers)
{
    return {numbers.begin(), numbers.end()};
}

static std::vector<float> product(const std::vector<__nv_bfloat16> &a,
                                  const std::vector<__nv_bfloat16> &b, int m, int n, int k)
{
    std::vector<float> c(static_cast<size_t>(m) * n);
    for (int row = 0; row < m; row++)
        for (int column = 0; column < n; column++)
            for (int l = 0; l < k; l++)
                c[row * n + column] +=
                    static_cast<float>(a[row * k + l]) * static_cast<float>(b[l * n + column]);
    return c;
}

int main()
{
    const int m = 128, n = 64, k = 96;
    std::vector<__nv_bfloat16> a = rounded(some_numbers(m * k, 1));
    std::vector<__nv_bfloat16> b = rounded(some_numbers(k * n, 2));
    Array<__nv_bfloat16> on_a(a), on_b(b);
    Array<float> c(m * n), fragment(16 * 8);
    LAUNCH(matmul, dim3(n / Tile, m / Tile), Threads, 0, 0, on_a, on_b, c, n, k);
    check_close(c.read(), product(a, b, m, n, k), 1e-4, "matmul");
    for (bool trans : {false, true}) {
        LAUNCH(one_fragment, 1, 32, 0, 0, on_a, on_b, fragment, trans);
        check_close(fragment.read(), product(a, b, 16, 8, 16), 1e-5, "one fragment");
    }
    return check_report();
}
