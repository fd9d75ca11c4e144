/* The keys of one query under a mask: the twin of ops/cpu/masked_row.h, tested pair by pair. */
#ifndef SOFTBACK_CUDA_MASKED_ROW_CUH
#define SOFTBACK_CUDA_MASKED_ROW_CUH

#include "cuda/device.cuh"
#include "ops/mask_terms.h"

/* Whether the mask's dense terms keep query i and key j; its other terms keep a range of keys
   (mask_range). */
__device__ inline bool mask_keeps(const mask_terms &mask, int64_t b, int64_t h, int64_t i,
                                  int64_t j)
{
    for (int t = 0; mask.dense && t < mask.count; t++) {
        const mask_term &term = mask.term[t];
        const int64_t *s = term.stride;
        if (term.kind == MASK_DENSE &&
            (term.pairs[b * s[0] + h * s[1] + i * s[2] + j * s[3]] != 0) != term.allows)
            return false;
        if (term.kind == MASK_BLOCKS &&
            !mask_block_kept(&term, b, h, mask_block_row(&term, i), mask_block_column(&term, j)))
            return false;
    }
    return true;
}

struct masked_row {
    const mask_terms &mask;
    int64_t b, h, i;
    key_range keys;

    /* Row r of scores (B, H, Lq, Lk). */
    __device__ masked_row(const mask_terms &mask, const mask_sizes &s, int64_t r)
        : mask(mask), b(r / s.Lq / s.H), h(r / s.Lq % s.H), i(r % s.Lq),
          keys(mask_range(&mask, b, i, i, s.Lk))
    {
    }
    __device__ bool keeps(int64_t j) const
    {
        return keys.from <= j && j < keys.to && mask_keeps(mask, b, h, i, j);
    }
};

#endif
