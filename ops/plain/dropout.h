/* Dropout of one element, for dropout itself, layer_norm and attention. */
#ifndef SOFTBACK_OPS_PLAIN_DROPOUT_H
#define SOFTBACK_OPS_PLAIN_DROPOUT_H

#include "ops/dropout.h"
#include "ops/plain/real.h"
#include "tensor/philox.h"

/* x / (1 - p), or 0 if the element is dropped; `place` is its row-major index
   in the whole tensor. It is dropped when its 16 bits are below the threshold
   p 2^16: those of Philox4x32-10 at counter (place / 8, position), word (place
   % 8) / 2, low half first. Backward is the same function of dy. */
static inline real dropout_of(const struct dropout *dropout, int64_t place,
                              real x)
{
    if (dropout->threshold == 0)
        return x;
    const struct philox random =
        philox(dropout->seed, dropout->position, (uint64_t)place / 8);
    const uint32_t word = random.word[place % 8 / 2];
    const uint32_t bits = place % 2 ? word >> 16 : word & 0xffff;
    return bits < dropout->threshold ? 0 : x * (real)dropout->scale;
}

/* The same for element e of this rank's part of x, in row-major order. */
static inline real dropout_here(const struct dropout *dropout, int64_t e,
                                real x)
{
    int64_t one = 1;
    if (dropout->threshold == 0)
        return x;
    return dropout_of(dropout, place_of_element(&dropout->place, e, &one), x);
}

#endif
