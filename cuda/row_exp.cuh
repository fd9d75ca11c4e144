/* The largest element of a row of any length, and the sum of exponentials, in one pass. */
#ifndef SOFTBACK_CUDA_ROW_EXP_CUH
#define SOFTBACK_CUDA_ROW_EXP_CUH

#include "cuda/lane_row.cuh"

/* The largest of some elements, ignoring NaN, and the sum of exp(x_c - max). While there is no
   element above -infinity, the sum is that of exp(x_c), which is 0. */
template <class real> struct max_and_sum {
    real max, sum;

    __device__ void rescale(real larger)
    {
        if (max < larger)
            sum *= max > -(real)INFINITY ? real_exp(max - larger) : 0;
        max = larger;
    }
    __device__ real shift() const
    {
        return max > -(real)INFINITY ? max : 0;
    }
};

/* A pack at a time (Milakov and Gimelshein 2018). A NaN makes the sum NaN. */
template <class T, int GROUP>
__device__ max_and_sum<real_of<T>> row_max_and_sum(const row_group<GROUP> &group, int64_t C,
                                                   const T *x)
{
    typedef real_of<T> real;
    max_and_sum<real> found = {-(real)INFINITY, 0};
    for (int64_t c = group.lane * ROW_PACK; c < C; c += GROUP * ROW_PACK) {
        const row_pack<T> part = row_pack<T>::load(x + c, C - c);
        real larger = found.max;
        for (int e = 0; e < ROW_PACK; e++)
            larger = e < C - c ? real_max(larger, part.of[e]) : larger;
        found.rescale(larger);
        for (int e = 0; e < ROW_PACK; e++)
            found.sum += e < C - c ? real_exp(part.of[e] - found.shift()) : 0;
    }
    found.rescale(group.max(found.max));
    return {found.max, group.sum(found.sum)};
}

#endif
