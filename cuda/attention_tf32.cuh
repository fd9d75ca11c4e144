/*
 * Products of float in attention on tensor cores, as 3xTF32: the overloads for float of what
 * cuda/attention_mma.cuh has for bf16.
 *
 * A float is the sum of two tf32, which have 11 significant bits, and of a rest of at most 2^-23 of
 * it:
 *
 *     x = high + low      high = x, rounded to 11 bits      low = x - high, cut to 11 bits
 *     x y ~ low_x high_y + high_x low_y + high_x high_y
 *
 * The omitted low_x low_y is at most 2^-22 of x y, so a product errs by up to 2^-21, 8 times as
 * much as in float, with either sign. Tensor cores cut sums towards 0, once for eight terms. Errors
 * of one sign would grow with the number of keys, so add_products sums up to 32 rows on tensor
 * cores and adds these sums in float.
 *
 * Sources: Ootomo and Yokota 2022, "Recovering single precision accuracy from Tensor Cores while
 * surpassing the FP32 theoretical peak performance"; CUTLASS's example 27.
 */
#ifndef SOFTBACK_CUDA_ATTENTION_TF32_CUH
#define SOFTBACK_CUDA_ATTENTION_TF32_CUH

#include "cuda/attention_mma.cuh"

/* The two parts of N numbers of a fragment. Of low, which has at most 12 bits, one is cut. NaN is
   still NaN in low. (cvt.rna.tf32 is five instructions, since it keeps NaN.) */
template <int N> struct tf32_parts {
    uint32_t high[N], low[N];

    __device__ void set(int n, float x)
    {
        const uint32_t half = 0x1000, mask = ~0x1fffu;
        high[n] = (__float_as_uint(x) + half) & mask;
        low[n] = __float_as_uint(x - __uint_as_float(high[n])) & mask;
    }
};

/* d += x y for each of some fragments; the small products first. A product does not wait for the
   one before it, since all fragments take turns. */
template <int M, int N>
__device__ __forceinline__ void multiply_add(float (&d)[M][N][4], const tf32_parts<4> (&x)[M],
                                             const tf32_parts<2> (&y)[N])
{
#pragma unroll
    for (int n = 0; n < M * N; n++)
        mma_m16n8k8_tf32(d[n / N][n % N], x[n / N].low, y[n % N].high);
#pragma unroll
    for (int n = 0; n < M * N; n++)
        mma_m16n8k8_tf32(d[n / N][n % N], x[n / N].high, y[n % N].low);
#pragma unroll
    for (int n = 0; n < M * N; n++)
        mma_m16n8k8_tf32(d[n / N][n % N], x[n / N].high, y[n % N].high);
}

/* s = x y': a warp's rows of x, from `row` on, with 8 N rows of y. */
template <int D, int M, int N>
__device__ void pair_products(const float *x, int row, const float *y, int column,
                              float (&s)[M][N][4])
{
#pragma unroll
    for (int n = 0; n < M * N * 4; n++)
        s[n / 4 / N][n / 4 % N][n % 4] = 0;
#pragma unroll 1 /* the code of all tiles shall fit into the cache of instructions */
    for (int chunk = 0; chunk < D / 4; chunk += 2) {
        tf32_parts<4> a[M];
        tf32_parts<2> b[N];
        uint32_t bits[4];
#pragma unroll
        for (int m = 0; m < M; m++) {
            load_a<D>(bits, x, row + 16 * m, chunk);
            for (int e = 0; e < 4; e++)
                a[m].set(e, __uint_as_float(bits[e]));
        }
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            load_b<D>(bits, y, column + 8 * n, chunk);
            for (int e = 0; e < 4; e++)
                b[n + e / 2].set(e % 2, __uint_as_float(bits[e]));
        }
        multiply_add(s, a, b);
    }
}

/* Rows row .. row + 7 of y, of its columns 8 d .. 8 d + 7, as a fragment b whose rows 0 to 7 are
   those in the order 0, 2, 4, 6, 1, 3, 5, 7: that of the columns of a fragment a below. No bank
   conflicts, since rows are 4 banks apart. */
template <int D>
__device__ tf32_parts<2> load_rows_across(const float *y, int row, int d, bool careful)
{
    const float *from = y + (row + 2 * lane_part()) * PITCH<D, float> + 8 * d + lane_group();
    tf32_parts<2> b;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const float x = from[e * PITCH<D, float>];
        b.set(e, careful && (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u ? 0 : x);
    }
    return b;
}

/* z += p y: a warp's pairs times 8 N rows of y from `row` on. With `careful`, non-finite numbers in
   y are replaced by 0 (cuda/attention_mma_nonfinite.cuh). A lane has columns 2 part and 2 part + 1
   of eight; as a fragment a they count as its columns part and part + 4, without shuffles. */
template <int D, int M, int N>
__device__ __forceinline__ void add_products(const float (&p)[M][N][4], const float *y, int row,
                                             bool careful, float (&z)[M][D / 8][4])
{
    enum { TOGETHER = M == 1 ? 4 : 2 }; /* columns of fragments, whose products take turns */
    tf32_parts<4> a[N][M];
#pragma unroll
    for (int n = 0; n < M * N; n++)
        for (int e = 0; e < 4; e++)
            a[n % N][n / N].set(e, p[n / N][n % N][e % 2 * 2 + e / 2]);
#pragma unroll
    for (int d = 0; d < D / 8; d += TOGETHER) {
        float sum[M][TOGETHER][4] = {};
        __syncwarp(); /* saves registers: limits loads to these columns */
#pragma unroll
        for (int n = 0; n < N; n++) {
            tf32_parts<2> b[TOGETHER];
#pragma unroll
            for (int e = 0; e < TOGETHER; e++)
                b[e] = load_rows_across<D>(y, row + 8 * n, d + e, careful);
            multiply_add(sum, a[n], b);
        }
#pragma unroll
        for (int n = 0; n < M * TOGETHER * 4; n++)
            z[n / 4 / TOGETHER][d + n / 4 % TOGETHER][n % 4] +=
                sum[n / 4 / TOGETHER][n / 4 % TOGETHER][n % 4];
    }
}

#endif
