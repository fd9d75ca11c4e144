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

/* d += x y; the small products first. */
__device__ inline void multiply_add(float (&d)[4], const tf32_parts<4> &x, const tf32_parts<2> &y)
{
    mma_m16n8k8_tf32(d, x.low, y.high);
    mma_m16n8k8_tf32(d, x.high, y.low);
    mma_m16n8k8_tf32(d, x.high, y.high);
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
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint32_t bits[4];
            load_a<D>(bits, x, row + 16 * m, chunk);
            for (int e = 0; e < 4; e++)
                a[m].set(e, __uint_as_float(bits[e]));
        }
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t bits[4];
            tf32_parts<2> b[2];
            __syncwarp(); /* saves registers: limits loads to two fragments */
            load_b<D>(bits, y, column + 8 * n, chunk);
            for (int e = 0; e < 4; e++)
                b[e / 2].set(e % 2, __uint_as_float(bits[e]));
#pragma unroll
            for (int m = 0; m < M; m++) {
                multiply_add(s[m][n], a[m], b[0]);
                multiply_add(s[m][n + 1], a[m], b[1]);
            }
        }
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
    tf32_parts<4> a[M][N];
#pragma unroll
    for (int n = 0; n < M * N; n++)
        for (int e = 0; e < 4; e++)
            a[n / N][n % N].set(e, p[n / N][n % N][e % 2 * 2 + e / 2]);
#pragma unroll
    for (int d = 0; d < D / 8; d++) {
        float sum[M][4] = {};
        __syncwarp(); /* saves registers: limits loads to the rows of one d */
#pragma unroll
        for (int n = 0; n < N; n++) {
            const tf32_parts<2> b = load_rows_across<D>(y, row + 8 * n, d, careful);
#pragma unroll
            for (int m = 0; m < M; m++)
                multiply_add(sum[m], a[m][n], b);
        }
#pragma unroll
        for (int n = 0; n < M * 4; n++)
            z[n / 4][d][n % 4] += sum[n / 4][n % 4];
    }
}

#endif
