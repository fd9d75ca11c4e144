/* The random numbers of one generated pair: a stream of its own, fixed by seed, part and index. */
#ifndef SOFTBACK_MODELS_TEXT_DRAWS_H
#define SOFTBACK_MODELS_TEXT_DRAWS_H

#include "tensor/philox.h"
#include "tensor/random.h"

struct draws {
    uint64_t seed, position, count;
};

/* A whole number in 0..limit-1, without bias. */
static inline uint32_t draw_below(struct draws *draws, uint32_t limit)
{
    uint32_t biased = -limit % limit; /* rejecting 2^32 mod limit products removes the bias */
    uint64_t product;
    do
        product = (uint64_t)philox(draws->seed, draws->position, draws->count++).word[0] * limit;
    while ((uint32_t)product < biased);
    return (uint32_t)(product >> 32);
}

#endif
