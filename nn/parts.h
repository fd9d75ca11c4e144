/* Gathers distributed parameters and scatters them again, for files and for tests. */
#ifndef SOFTBACK_NN_PARTS_H
#define SOFTBACK_NN_PARTS_H

#include "nn/flat.h"

/*
 * The unsharded values of `count` parameters from number `first` on, concatenated in a new tensor
 * (n) on the CPU. `flat` is a flat buffer: of the parameters, or of gradients or moments, which
 * frozen parameters have none of. All ranks call it and get the same.
 */
sb_tensor *parts_join(const sb_parameters *set, const sb_tensor *flat, int64_t first,
                      int64_t count);

/* The inverse: copies this rank's part of such a tensor into the flat buffer. */
bool parts_take(const sb_parameters *set, sb_tensor *flat, int64_t first, int64_t count,
                const sb_tensor *whole);

/* The number of unsharded values of the parameters that the flat buffer has. */
int64_t parts_size(const sb_parameters *set, const sb_tensor *flat, int64_t first, int64_t count);

#endif
