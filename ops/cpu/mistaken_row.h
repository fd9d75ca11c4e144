/* Wrong gradients of a row of softmax, for builds that teach what they lead to. */
#ifndef SOFTBACK_OPS_CPU_MISTAKEN_ROW_H
#define SOFTBACK_OPS_CPU_MISTAKEN_ROW_H

#ifdef SOFTBACK_TEACHING
#include "ops/attention.h"
#include "ops/cpu/real.h"

/* da becomes scale ds, as attention_mistake has it. */
static inline void mistaken_row_gradient(int64_t n, real scale, const real *a, real *da)
{
    real mean = 0;
    for (int64_t j = 0; j < n; j++) {
        da[j] = attention_mistake == MISTAKE_ZERO ? 0 : scale * (a[j] * (1 - a[j]) * da[j]);
        mean += da[j] / (real)n;
    }
    for (int64_t j = 0; attention_mistake == MISTAKE_CENTRED && j < n; j++)
        da[j] -= mean;
}
#endif

#endif
