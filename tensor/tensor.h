/*
 * Tensors: contiguous, row-major, reference-counted.
 *
 * A constructor returns a reference that the caller owns and gives back with sb_tensor_release.
 * Operations (ops.h) return tensors that the open tape owns.
 */
#ifndef SOFTBACK_TENSOR_TENSOR_H
#define SOFTBACK_TENSOR_TENSOR_H

#include "device.h"
#include "dtype.h"

typedef struct sb_tensor sb_tensor;

/* A shape in an argument list: sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)). It lives as long as the
   call in C++, and as the block in C. */
#ifdef __cplusplus
#include <initializer_list>
#define SB_SHAPE(...)                                                                              \
    (int)std::initializer_list<int64_t>{__VA_ARGS__}.size(),                                       \
        std::initializer_list<int64_t>{__VA_ARGS__}.begin()
#else
#define SB_SHAPE(...)                                                                              \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#endif
#define SB_SCALAR 0, NULL

/* Constructors, on the device in use (sb_use_device), the CPU by default. Each fails on a rank
   above 6, a negative or overflowing dimension, and when there is no memory. */
SB_API sb_tensor *sb_tensor_zeros(sb_dtype dtype, int rank, const int64_t *dim);
SB_API sb_tensor *sb_tensor_full(sb_dtype dtype, int rank, const int64_t *dim, double value);
/* Copies `values`, elements of the dtype in row-major order. */
SB_API sb_tensor *sb_tensor_from(sb_dtype dtype, int rank, const int64_t *dim, const void *values);
/* The same from doubles, each converted to the dtype. */
SB_API sb_tensor *sb_tensor_from_doubles(sb_dtype dtype, int rank, const int64_t *dim,
                                         const double *values);
SB_API sb_tensor *sb_scalar(sb_dtype dtype, double value);
/* A copy on a device: a leaf, which wants a gradient where t is a leaf that does. */
SB_API sb_tensor *sb_tensor_to(const sb_tensor *t, const sb_device *device);

SB_API sb_tensor *sb_tensor_retain(sb_tensor *t); /* one more owner; returns t; NULL is allowed */
SB_API void sb_tensor_release(sb_tensor *t);      /* one owner less; NULL is allowed */

/* What a tensor is. On NULL: 0, SB_F32, false. */
SB_API int sb_tensor_rank(const sb_tensor *t);
SB_API int64_t sb_tensor_dim(const sb_tensor *t, int axis); /* -1 is the last; 0 if out of range */
SB_API int64_t sb_tensor_size(const sb_tensor *t);          /* the number of elements */
SB_API sb_dtype sb_tensor_dtype(const sb_tensor *t);
SB_API const sb_device *sb_tensor_device(const sb_tensor *t);

/* The elements of a CPU tensor, in place; NULL with a message when they were let go. */
SB_API void *sb_tensor_data(sb_tensor *t);
/* One element, by its row-major index. sb_get returns NaN on failure. */
SB_API double sb_get(const sb_tensor *t, int64_t index);
SB_API bool sb_put(sb_tensor *t, int64_t index, double value);
/* The only element of a tensor of size 1, such as a loss; NaN on failure. */
SB_API double sb_value(const sb_tensor *t);
/* Copies all elements out, or in, as doubles; `values` has room for sb_tensor_size(t). */
SB_API bool sb_tensor_read(const sb_tensor *t, double *values);
SB_API bool sb_tensor_write(sb_tensor *t, const double *values);

/* Marks a leaf (a tensor that no operation made) as something that backward computes a gradient
   for. Fails unless it is real. Returns t, so that calls can be chained. */
SB_API sb_tensor *sb_requires_grad(sb_tensor *t);
/* The gradient that backward left, which t owns; NULL, without a message, when there is none. */
SB_API sb_tensor *sb_grad(const sb_tensor *t);
/* Forgets the gradient. The next backward starts afresh. */
SB_API void sb_clear_grad(sb_tensor *t);

/* Prints shape, dtype and elements to standard output (the middle of long axes is left out). NULL
   prints what went wrong. */
SB_API void sb_print(const sb_tensor *t);
/* The same as a text, to be freed with sb_free. */
SB_API char *sb_tensor_text(const sb_tensor *t);

#endif
