/* What the files of attention have for each other. */
#ifndef SOFTBACK_CUDA_ATTENTION_CUH
#define SOFTBACK_CUDA_ATTENTION_CUH

#include "cuda/attention_tiles.cuh"
#include "ops/rows.h"

/* The norm of row n, at least 1e-12; of smaller numbers, if squares overflow. */
template <class T>
__device__ real_of<T> key_length(const rows<const T> &x, int64_t n, int64_t depth)
{
    typedef real_of<T> real;
    real squares = 0, shrunk = 0;
    for (int64_t d = 0; d < depth; d++) {
        const real e = (real)x.at[n * x.step + d], small = e * ROW_SHRINK(real);
        squares += e * e;
        shrunk += small * small;
    }
    const real length =
        squares < (real)INFINITY ? real_sqrt(squares) : real_sqrt(shrunk) / ROW_SHRINK(real);
    return length < (real)1e-12 ? (real)1e-12 : length;
}

/* For each element type. The first is for few queries, without dropout. */
template <class T> bool attention_cached_forward(const attention *a, const attention_forward *f);
template <class T> void attention_row_sums(const attention &a, const attention_tiled_backward &g);

/* In attention_mma*.cu: the same on tensor cores for bf16, and for float as 3xTF32. False, without
   queued work, when the heads are too large, or float has a bias. */
template <class T> bool attention_mma_forward(const attention &a, const attention_tiled &f);
template <class T>
bool attention_mma_backward(const attention &a, const attention_tiled_backward &g);

#endif
