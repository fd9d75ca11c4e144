/*
 * The position of elements within the unsharded tensor (ops/context.h). Dropout selects random bits
 * by this position, so they do not depend on the partition.
 *
 * The unsharded tensor has four axes: (items, heads, queries, keys) for attention scores and
 * (1, items, positions, units) otherwise. This rank holds one or two ranges of each axis. A row
 * extends along the last axis.
 */
#ifndef SOFTBACK_OPS_PLACE_H
#define SOFTBACK_OPS_PLACE_H

#include "ops/context.h"
#include "ops/kernel.h"

struct place_axis {
    int64_t here, of;     /* size on this rank, and size of the unsharded axis */
    int64_t first;        /* where this rank's elements begin in the unsharded axis */
    int64_t turn, second; /* where the elements from `turn` on begin in it */
};

struct place {
    bool flat; /* element e is at offset + e: this rank holds all elements or a range of items */
    int64_t offset; /* 0 where it is not flat */
    int64_t pitch;  /* distance between rows of the unsharded tensor */
    struct place_axis axis[4];
};

KERNEL_INLINE int64_t place_on(const struct place_axis *axis, int64_t n)
{
    return n < axis->turn ? axis->first + n : axis->second + n - axis->turn;
}

/* The position of row r within the unsharded tensor. */
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

/* The position of element j within its unsharded row. *n is reduced to the number of elements that
   are contiguous from there on. */
KERNEL_INLINE int64_t place_in_row(const struct place *place, int64_t j, int64_t *n)
{
    const struct place_axis *keys = &place->axis[3];
    if (place->flat)
        return j;
    if (j < keys->turn && keys->turn - j < *n)
        *n = keys->turn - j;
    return place_on(keys, j);
}

/* Whether rows are the beginnings of successive rows of the unsharded tensor, for each item and
   head. */
KERNEL_INLINE bool place_has_prefixes(const struct place *place)
{
    const struct place_axis *queries = &place->axis[2], *keys = &place->axis[3];
    return queries->turn == queries->here && keys->first == 0 && keys->turn == keys->here;
}

/* The same for element e of the tensor, within the unsharded tensor. */
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

/* The place of x (items, positions, units...), whose positions belong to sequence `along`, by the
   open tape's partition. Fails, with `who` opening the message, when x does not fit the
   partition. */
bool place_of_units(const char *who, const sb_tensor *x, sb_sequence along, struct place *place);

/* The place of attention scores (B, H, Lq, Lk). Unsharded rows are padded to a multiple of 8, so
   that each starts at a new Philox counter. `heads` is the range of heads that this rank holds. */
bool place_of_pairs(const char *who, const int64_t pairs[4], const sb_piece *heads,
                    sb_sequence queries, sb_sequence keys, struct place *place);

#endif
