/*
 * The random bits of dropout: 16 for each element, eight elements from each Philox counter.
 *
 * Element e of the unsharded tensor has the bits of counter (e / 8, position): word (e % 8) / 2,
 * the low half first. Bits are computed for 256 elements at a time and not stored.
 */
#ifndef SOFTBACK_OPS_CPU_DROPOUT_BITS_H
#define SOFTBACK_OPS_CPU_DROPOUT_BITS_H

#include "ops/cpu/vector.h"
#include "ops/dropout.h"

enum { DROPOUT_GROUPS = 32, DROPOUT_CHUNK = 8 * DROPOUT_GROUPS };

struct dropout_bits {
    uint16_t of[DROPOUT_CHUNK];
};

/* The bits of `groups` times eight elements, from 8 group on; writes up to 64 more. */
void CPU(dropout_bits)(const struct dropout *dropout, uint64_t group, int64_t groups, uint16_t *of);

/* dropout(x) with these bits, for a vector. */
static inline vector dropout_vector(const struct dropout *dropout, const uint16_t *bits, vector x)
{
    typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
    const vector_bits wide = __builtin_convertvector(*(const halves *)bits, vector_bits);
    const vector_bits stays = (vector_bits)(wide >= (real_bits)dropout->threshold);
    return (vector)((vector_bits)(x * (real)dropout->scale) & stays);
}

/* y = dropout(x) with these bits; x and y may be the same. */
static inline void dropout_apply(const struct dropout *dropout, const uint16_t *bits, int64_t count,
                                 const real *x, real *y)
{
    const real scale = (real)dropout->scale;
    const uint32_t threshold = dropout->threshold;
    for (int64_t e = 0; e < count; e++)
        y[e] = bits[e] < threshold ? 0 : x[e] * scale;
}

/* Reads bits for elements in increasing order: one chunk serves several short rows. */
struct dropout_reader {
    const struct dropout *dropout;
    int64_t end; /* the unsharded element after the current chunk; 0: no chunk yet */
    struct dropout_bits bits;
};

/* The bits of unsharded elements from `first` on. *count is reduced to the number available. */
static inline const uint16_t *dropout_read(struct dropout_reader *reader, int64_t first,
                                           int64_t *count)
{
    if (first >= reader->end || first < reader->end - DROPOUT_CHUNK) {
        CPU(dropout_bits)(reader->dropout, (uint64_t)first / 8, DROPOUT_GROUPS, reader->bits.of);
        reader->end = first / 8 * 8 + DROPOUT_CHUNK;
    }
    const int64_t room = reader->end - first;
    *count = *count < room ? *count : room;
    return reader->bits.of + (DROPOUT_CHUNK - room);
}

/* The same from this rank's element e on. */
static inline const uint16_t *dropout_read_here(struct dropout_reader *reader, int64_t e,
                                                int64_t *count)
{
    const int64_t first = place_of_element(&reader->dropout->place, e, count);
    return dropout_read(reader, first, count);
}

#endif
