/* Parts of tensors, as ranks hold them. */
#ifndef SOFTBACK_TESTS_SUPPORT_SHARE_H
#define SOFTBACK_TESTS_SUPPORT_SHARE_H

#include "tests/support/test.h"

/* The `here` elements of t along an axis that a piece describes: a leaf, which requires a gradient
   if it is real. */
sb_tensor *share_part(const sb_tensor *t, int axis, const sb_piece *piece, int64_t here);

/* Adds x to those elements of t. */
void share_add(sb_tensor *t, int axis, const sb_piece *piece, const sb_tensor *x);

#endif
