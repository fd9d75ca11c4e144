/* Shares of tensors, as ranks of a job have them. */
#ifndef SOFTBACK_TESTS_SHARE_H
#define SOFTBACK_TESTS_SHARE_H

#include "tests/test.h"

/* What rank `rank` of `ranks` holds of a sequence that is cut zig-zag: of 2 ranks chunks the one
   of its number and the one of its number from the end. Returns how many elements. */
int64_t share_zigzag(int64_t length, int ranks, int rank, sb_piece *piece);

/* The `here` elements of t along an axis that a piece speaks of: a leaf that wants a
   gradient where it can have one. */
sb_tensor *share_part(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here);

/* Adds x to those elements of t. */
void share_add(sb_tensor *t, int axis, const sb_piece *piece, const sb_tensor *x);

#endif
