/* From the parts of parameters that ranks hold to the whole, and back: for files, and for tests. */
#ifndef SOFTBACK_NN_PARTS_H
#define SOFTBACK_NN_PARTS_H

#include "nn/flat.h"

/*
 * The numbers of `count` parameters from number `first` on, one whole parameter after the other, in
 * a new tensor (n) on the CPU, out of a flat buffer as the parameters' own or their moments are.
 * All ranks that hold parts call it, and get the same.
 */
sb_tensor *parts_join(const sb_parameters *set, const sb_tensor *flat, int64_t first,
                      int64_t count);

/* The opposite: what is here of such a tensor goes into the flat buffer. */
bool parts_take(const sb_parameters *set, sb_tensor *flat, int64_t first, int64_t count,
                const sb_tensor *whole);

/* How many numbers the parameters have, those of other ranks too. */
int64_t parts_size(const sb_parameters *set, int64_t first, int64_t count);

#endif
