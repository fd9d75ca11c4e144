/* The gradient of a bias in tiled attention: which tiles of scores contribute to a tile of the
   bias. */
#ifndef SOFTBACK_CUDA_ATTENTION_BIAS_CUH
#define SOFTBACK_CUDA_ATTENTION_BIAS_CUH

#include "cuda/attention_tiles.cuh"

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

#endif
