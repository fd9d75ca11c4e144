#include "cuda/broadcast.cuh"
#include "ops/shape.h"

namespace
{

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
    return broadcast_copy<Word>("slice", plan, x, add, y);
}

template <class T> bool copy(size_t width, runs runs, const void *x, void *y)
{
    return with_word(width, [&](auto word) { return move<decltype(word)>(false, runs, x, y); });
}

template <class T> bool add_runs(runs runs, const void *x, void *y)
{
    return move<T>(true, runs, x, y);
}

} // namespace

KERNELS_AND_BF16(slice, copy<T>, add_runs<T>);
