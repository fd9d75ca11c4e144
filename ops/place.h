/*
 * Where the elements of a tensor stand in the whole of which it is a part (ops/context.h), for
 * dropout: what an element draws goes by its place there, and so depends on no split.
 *
 * The whole has four axes, (items, heads, queries, keys) for pairs and (1, items,
 * positions, units) for others; what is here of each is one run of it, or two. A row is what lies
 * along the last axis.
 */
#ifndef SOFTBACK_OPS_PLACE_H
#define SOFTBACK_OPS_PLACE_H

#include "ops/context.h"
#include "ops/kernel.h"

struct place_axis {
    int64_t here, of;     /* how many there are, and how many in the whole */
    int64_t first;        /* where those here begin in the whole */
    int64_t turn, second; /* where those from `turn` on do */
};

struct place {
    bool flat;      /* element e stands at offset + e: all are here, or a range of items */
    int64_t offset; /* 0 where it is not flat */
    int64_t pitch;  /* from one row of the whole to the next */
    struct place_axis axis[4];
};

KERNEL_INLINE int64_t place_on(const struct place_axis *axis, int64_t n)
{
    return n < axis->turn ? axis->first + n : axis->second + n - axis->turn;
}

/* Where row r begins in the whole. */
KERNEL_INLINE int64_t place_of_row(const struct place *place, int64_t r)
{
    const struct place_axis *a = place->axis;
    if (place->flat)
        return place->offset + r * place->pitch;
    int64_t row = place_on(&a[0], r / a[2].here / a[1].here);
    row = row * a[1].of + place_on(&a[1], r / a[2].here % a[1].here);
    row = row * a[2].of + place_on(&a[2], r % a[2].here);
    return row * place->pitch;
}

/* Where element j stands in a row, and how many stand side by side from there on: at most *n. */
KERNEL_INLINE int64_t place_in_row(const struct place *place, int64_t j, int64_t *n)
{
    const struct place_axis *keys = &place->axis[3];
    if (place->flat)
        return j;
    if (j < keys->turn && keys->turn - j < *n)
        *n = keys->turn - j;
    return place_on(keys, j);
}

/* The same for an element of them all, in rows that lie one after the other. */
KERNEL_INLINE int64_t place_of_element(const struct place *place, int64_t e, int64_t *n)
{
    const int64_t C = place->axis[3].here;
    if (place->flat)
        return place->offset + e;
    if (C - e % C < *n)
        *n = C - e % C;
    const int64_t row = place_of_row(place, e / C);
    return row + place_in_row(place, e % C, n);
}

/* The place of x (items, positions, units...) in the whole that the open tape's partition is of,
   its positions being those of a sequence. False, with a message in the name of `who`, where x is
   no such part. */
bool place_of_units(const char *who, const sb_tensor *x, sb_sequence along, struct place *place);

/* That of pairs (B, H, Lq, Lk), whose rows in the whole are rounded up to a multiple of 8, so that
   each begins with a fresh Philox counter. `heads` says which of all heads are here. */
bool place_of_pairs(const char *who, const int64_t pairs[4], const sb_piece *heads,
                    sb_sequence queries, sb_sequence keys, struct place *place);

#endif
