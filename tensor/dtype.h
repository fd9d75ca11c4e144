/* Element types. The two real types come first, so that they index rows of kernels. */
#ifndef SOFTBACK_TENSOR_DTYPE_H
#define SOFTBACK_TENSOR_DTYPE_H

#include "error.h"
#include <stddef.h>

typedef enum {
    SB_F32,  /* float */
    SB_F64,  /* double */
    SB_I32,  /* int32_t, for ids */
    SB_BOOL, /* one byte, 0 or 1, for masks */
} sb_dtype;

enum { SB_DTYPES = 4, SB_REAL_DTYPES = 2 };

SB_API const char *sb_dtype_name(sb_dtype dtype); /* "f32", "f64", "i32", "bool" */
SB_API size_t sb_dtype_bytes(sb_dtype dtype);     /* bytes of an element */
SB_API bool sb_dtype_is_real(sb_dtype dtype);     /* whether it may carry a gradient */

#endif
