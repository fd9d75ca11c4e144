/*
 * Non-finite numbers in v, k, q or dy in products on tensor cores.
 *
 * 0 times such a number is NaN, but blocked pairs must not contribute. So tiles with blocked pairs
 * are first searched for non-finite numbers. Products use 0 in their place, and results to which
 * one belongs by a kept pair are marked and set to NaN at the end. A tile that is whole needs none
 * of this.
 */
#ifndef SOFTBACK_CUDA_ATTENTION_MMA_NONFINITE_CUH
#define SOFTBACK_CUDA_ATTENTION_MMA_NONFINITE_CUH

#include "cuda/attention_mma.cuh"

/* For ROWS rows of a result, COLUMNS rows of a tile at a time, D numbers each. */
template <int D, int ROWS, int COLUMNS, int THREADS> struct nonfinite {
    enum { WORDS = (D + 31) / 32 };
    uint64_t in_column[D];     /* bit n: row n of the tile is not finite there */
    uint32_t nan[ROWS][WORDS]; /* the results that are NaN */

    __device__ void begin()
    {
        for (int n = threadIdx.x; n < ROWS * WORDS; n += THREADS)
            nan[n / WORDS][n % WORDS] = 0;
    }

    /* Finds and marks non-finite numbers in the tile; returns whether there are any. Bit n of
       kept(row): row n of the tile and that row of the result are a kept pair. All threads of the
       block must call it. */
    template <class T, class Kept> __device__ bool find(const T *y, Kept kept)
    {
        enum { N = CHUNK<T> };
        bool all_finite = true;
        for (int n = threadIdx.x; n < COLUMNS * (D / N); n += THREADS) {
            const T *chunk = y + n / (D / N) * PITCH<D, T> + n % (D / N) * N;
            const pack<T> part = *reinterpret_cast<const pack<T> *>(chunk);
            for (int e = 0; e < N; e++)
                all_finite &= is_finite(part.of[e]);
        }
        if (!__syncthreads_or(!all_finite))
            return false;
        for (int d = threadIdx.x; d < D; d += THREADS) {
            uint64_t rows = 0;
            for (int r = 0; r < COLUMNS; r++)
                rows |= (uint64_t)!is_finite(y[r * PITCH<D, T> + d]) << r;
            in_column[d] = rows;
        }
        __syncthreads();
        for (int n = threadIdx.x; n < ROWS * WORDS; n += THREADS) {
            const uint64_t rows = kept(n / WORDS);
            for (int d = n % WORDS * 32; d < D && d < n % WORDS * 32 + 32; d++)
                nan[n / WORDS][n % WORDS] |= (uint32_t)((rows & in_column[d]) != 0) << d % 32;
        }
        return true;
    }

    /* Overwrites the marked results with NaN, in a warp's rows from `first` on, which begin at
       `to`. */
    template <class T>
    __device__ void show(int first, int warp_rows, rows<T> to, int64_t count, int64_t columns)
    {
        __syncwarp();
        for (int n = threadIdx.x % WARP; n < warp_rows * WORDS; n += WARP) {
            const int r = n / WORDS, w = n % WORDS;
            for (int c = 0; nan[first + r][w] != 0 && c < 32; c++)
                if ((nan[first + r][w] >> c & 1) && r < count && 32 * w + c < columns)
                    to.at[r * to.step + 32 * w + c] = (T)(float)NAN;
        }
    }

  private:
    static __device__ bool is_finite(bf16 x)
    {
        return (__bfloat16_as_ushort(x) & 0x7f80) != 0x7f80;
    }
    static __device__ bool is_finite(float x)
    {
        return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
    }
};

#endif
