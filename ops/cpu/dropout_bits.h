/*
 * The random bits of dropout: 16 for each element, eight elements from each Philox counter.
 *
 * Element e of a call has the bits of counter (e / 8, position): word (e % 8) / 2, the low half
 * first. Bits are made for 256 elements at a time, in a loop over counters that compilers turn
 * into vector instructions; they are never stored beyond that.
 */
#ifndef SOFTBACK_OPS_CPU_DROPOUT_BITS_H
#define SOFTBACK_OPS_CPU_DROPOUT_BITS_H

#include "ops/cpu/real.h"
#include "ops/dropout.h"
#include "tensor/random.h"

enum { DROPOUT_GROUPS = 32, DROPOUT_CHUNK = 8 * DROPOUT_GROUPS };

struct dropout_bits {
    uint16_t of[DROPOUT_CHUNK];
};

/* The bits of the elements 8 group .. 8 group + 255. */
static inline struct dropout_bits dropout_bits(const struct dropout *dropout, uint64_t group)
{
    uint32_t word[4][DROPOUT_GROUPS];
    for (int g = 0; g < DROPOUT_GROUPS; g++) {
        struct philox draw = philox(dropout->seed, dropout->position, group + (uint64_t)g);
        for (int w = 0; w < 4; w++)
            word[w][g] = draw.word[w];
    }
    struct dropout_bits bits;
    for (int g = 0; g < DROPOUT_GROUPS; g++)
        for (int w = 0; w < 4; w++) {
            bits.of[8 * g + 2 * w] = (uint16_t)word[w][g];
            bits.of[8 * g + 2 * w + 1] = (uint16_t)(word[w][g] >> 16);
        }
    return bits;
}

#endif
