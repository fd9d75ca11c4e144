/* The largest element of a row of any length, and the sum of exponentials, in one pass. */
#ifndef SOFTBACK_CUDA_ROW_EXP_CUH
#define SOFTBACK_CUDA_ROW_EXP_CUH

#include "cuda/lane_row.cuh"

/* e^x for elements of type T. For bf16 with a relative error of 2^-17, and 0 below 2^-126. */
template <class T> __device__ real_of<T> exp_for(real_of<T> x)
{
    if constexpr (std::is_same_v<T, bf16>)
        return fast_exp2(x * 1.44269504f);
    else
        return real_exp(x);
}

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

/* A piece at a time (Milakov and Gimelshein 2018). A NaN makes the sum NaN. */
template <class T, int GROUP>
__device__ max_and_sum<real_of<T>> row_max_and_sum(const row_group<GROUP> &group, int64_t C,
                                                   const T *x, bool aligned)
{
    typedef real_of<T> real;
    max_and_sum<real> found = {-(real)INFINITY, 0};
    each_piece(group, C, aligned, [&](const auto &lane, int64_t c) {
        const auto part = load_row<real>(lane, x + c, -(real)INFINITY);
        real larger = found.max;
        lane.each([&](int n) { larger = real_max(larger, part[n]); });
        found.rescale(larger);
        const real shift = found.shift();
        lane.each([&](int n) { found.sum += exp_for<T>(part[n] - shift); });
    });
    found.rescale(group.max(found.max));
    return {found.max, group.sum(found.sum)};
}

#endif
