#include "cuda/broadcast.cuh"
#include "ops/slice.h"

namespace
{

struct x_itself {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return e.a;
    }
};

/* y = x, or y += x, elements of type Word: runs are the rows of a traversal of two axes. */
template <class Word> bool move(bool add, runs runs, const void *x, void *y)
{
    broadcast plan = {};
    plan.rank = 2;
    plan.dim[0] = runs.count;
    plan.dim[1] = runs.length;
    plan.stride[0][0] = runs.y_stride;
    plan.stride[1][0] = runs.x_stride;
    plan.stride[0][1] = plan.stride[1][1] = 1;
    const operands<Word> in = {nullptr, (const Word *)x, nullptr, nullptr, 0};
    return broadcast_map<Word, x_itself>("slice", plan, in, add, (Word *)y);
}

template <class T> bool copy(size_t width, runs runs, const void *x, void *y)
{
    return width == 1   ? move<uint8_t>(false, runs, x, y)
           : width == 2 ? move<uint16_t>(false, runs, x, y)
           : width == 4 ? move<uint32_t>(false, runs, x, y)
                        : move<uint64_t>(false, runs, x, y);
}

template <class T> bool add_runs(runs runs, const void *x, void *y)
{
    return move<T>(true, runs, x, y);
}

} // namespace

KERNELS_AND_BF16(slice, copy<T>, add_runs<T>);
