/* All rows of kernels, in the order of ops/meson.build's lists. */
#ifndef SOFTBACK_CUDA_ROWS_CUH
#define SOFTBACK_CUDA_ROWS_CUH

#include "tensor/plugin.h"

extern const struct plugin_row *const cuda_rows[]; /* ends with NULL */

#endif
