/*
 * Numbers that are not finite, in what pairs are multiplied with on tensor cores: v, k, q or dy.
 *
 * 0 times such a number is NaN, and pairs that the mask blocks count nothing. So tiles of which
 * some pairs are blocked are searched for such numbers first. Products then take 0 in their place,
 * and where one belongs to a kept pair it is noted that the result is NaN; that is written last.
 * (In a tile that is whole, products are what they are.)
 */
#ifndef SOFTBACK_CUDA_ATTENTION_MMA_UNFINITE_CUH
#define SOFTBACK_CUDA_ATTENTION_MMA_UNFINITE_CUH

#include "cuda/attention_mma.cuh"

/* For ROWS rows of a result, COLUMNS rows of a tile at a time, D numbers each. */
template <int D, int ROWS, int COLUMNS, int THREADS> struct unfinite {
    enum { WORDS = (D + 31) / 32 };
    uint64_t in_column[D];     /* bit n: row n of the tile has such a number there */
    uint32_t nan[ROWS][WORDS]; /* the results that are NaN */

    __device__ void begin()
    {
        for (int n = threadIdx.x; n < ROWS * WORDS; n += THREADS)
            nan[n / WORDS][n % WORDS] = 0;
    }

    /* Whether the tile has any; if so, notes it. Bit n of kept(row) tells whether row n of the tile
       makes a kept pair with that row of the result. All threads of the block call it. */
    template <class Kept> __device__ bool find(const bf16 *y, Kept kept)
    {
        bool all_finite = true;
        for (int n = threadIdx.x; n < COLUMNS * (D / 8); n += THREADS) {
            const bf16 *chunk = y + n / (D / 8) * PITCH<D> + n % (D / 8) * 8;
            const pack<bf16> part = *reinterpret_cast<const pack<bf16> *>(chunk);
            for (int e = 0; e < 8; e++)
                all_finite &= is_finite(part.of[e]);
        }
        if (!__syncthreads_or(!all_finite))
            return false;
        for (int d = threadIdx.x; d < D; d += THREADS) {
            uint64_t rows = 0;
            for (int r = 0; r < COLUMNS; r++)
                rows |= (uint64_t)!is_finite(y[r * PITCH<D> + d]) << r;
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

    /* Writes NaN over a warp's rows, from `first` on, that begin at `to`. */
    __device__ void show(int first, int warp_rows, rows<bf16> to, int64_t count, int64_t columns)
    {
        __syncwarp();
        for (int n = threadIdx.x % WARP; n < warp_rows * WORDS; n += WARP) {
            const int r = n / WORDS, w = n % WORDS;
            for (int c = 0; nan[first + r][w] != 0 && c < 32; c++)
                if ((nan[first + r][w] >> c & 1) && r < count && 32 * w + c < columns)
                    to.at[r * to.step + 32 * w + c] = bf16(NAN);
        }
    }

  private:
    static __device__ bool is_finite(bf16 x)
    {
        return (__bfloat16_as_ushort(x) & 0x7f80) != 0x7f80;
    }
};

#endif
