/*
 * Tensors: contiguous, row-major, reference-counted.
 *
 * A constructor returns a reference that the caller owns and releases with sb_tensor_release.
 * Operations (ops.h) return tensors that the open tape owns.
 */
#ifndef SOFTBACK_TENSOR_TENSOR_H
#define SOFTBACK_TENSOR_TENSOR_H

#include "device.h"
#include "dtype.h"

typedef struct sb_tensor sb_tensor;

/* A rank and a shape as arguments: sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)). The array is valid for
   the call in C++, and for the block in C. */
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

/* Constructors, on the device of sb_use_device, by default the CPU. They fail when the rank is
   above 6, when a dimension is negative or the size overflows, and when memory runs out. */
SB_API sb_tensor *sb_tensor_zeros(sb_dtype dtype, int rank, const int64_t *dim);
SB_API sb_tensor *sb_tensor_full(sb_dtype dtype, int rank, const int64_t *dim, double value);
/* Copies `values`, elements of the dtype in row-major order. */
SB_API sb_tensor *sb_tensor_from(sb_dtype dtype, int rank, const int64_t *dim, const void *values);
/* The same from doubles, each converted to the dtype. */
SB_API sb_tensor *sb_tensor_from_doubles(sb_dtype dtype, int rank, const int64_t *dim,
                                         const double *values);
SB_API sb_tensor *sb_tensor_scalar(sb_dtype dtype, double value);
/*
 * A tensor of the caller's memory, without a copy, on the CPU: `data` has the elements in row-major
 * order, aligned as their type. It stays the caller's until release(context) is called: once, by
 * the thread that frees the last tensor that shares it. `release` may be NULL; a failure does not
 * call it. Backward does not notice writes to this memory.
 */
SB_API sb_tensor *sb_tensor_wrap(sb_dtype dtype, int rank, const int64_t *dim, void *data,
                                 void (*release)(void *context), void *context);
/* A copy on a device. It is a leaf, and requires a gradient if t is a leaf that does. */
SB_API sb_tensor *sb_tensor_to(const sb_tensor *t, const sb_device *device);

SB_API sb_tensor *sb_tensor_retain(sb_tensor *t); /* adds a reference; returns t; NULL is allowed */
SB_API void sb_tensor_release(sb_tensor *t); /* drops a reference, frees t at 0; NULL is allowed */

/* Properties of a tensor. For NULL: 0, SB_F32, false. */
SB_API int sb_tensor_rank(const sb_tensor *t);
SB_API int64_t sb_tensor_dim(const sb_tensor *t, int axis); /* -1 is the last; 0 if out of range */
SB_API int64_t sb_tensor_size(const sb_tensor *t);          /* the number of elements */
SB_API sb_dtype sb_tensor_dtype(const sb_tensor *t);
SB_API const sb_device *sb_tensor_device(const sb_tensor *t);

/* The elements of a CPU tensor, in place; NULL, with a message, when backward has freed them, and
   for dual numbers. */
SB_API void *sb_tensor_data(sb_tensor *t);
/* The elements of a tensor of dual numbers, in place: an sb_dual each (dual.h); else NULL. */
SB_API void *sb_tensor_dual_data(sb_tensor *t);
/* One element, by its row-major index; of a dual number, its value. NaN on failure. */
SB_API double sb_tensor_get(const sb_tensor *t, int64_t index);
/* The tangent of a dual number; 0 for other dtypes, whose elements are constants. */
SB_API double sb_tensor_tangent(const sb_tensor *t, int64_t index);
/* Sets an element; of a dual number, with tangent 0. */
SB_API bool sb_tensor_set(sb_tensor *t, int64_t index, double value);
/* The only element of a tensor of size 1, such as a loss; NaN on failure. */
SB_API double sb_tensor_value(const sb_tensor *t);
/* Copies all elements to `values`, or from `values`, as sb_tensor_size(t) doubles. */
SB_API bool sb_tensor_read(const sb_tensor *t, double *values);
SB_API bool sb_tensor_write(sb_tensor *t, const double *values);

/* Makes backward compute a gradient for t, which must be a real leaf: a tensor that is not the
   result of an operation. Returns t, so that calls can be chained. */
SB_API sb_tensor *sb_tensor_requires_grad(sb_tensor *t);
/* Whether backward computes a gradient for t: for a leaf that requires one, and on a recording tape
   for what depends on such a leaf. */
SB_API bool sb_tensor_needs_grad(const sb_tensor *t);
/* The gradient, which t owns; NULL, without a message, when there is none. */
SB_API sb_tensor *sb_tensor_grad(const sb_tensor *t);
/* Clears the gradient, as zero_grad does in PyTorch. */
SB_API void sb_tensor_clear_grad(sb_tensor *t);

/* Prints shape, dtype and elements to standard output, without the middle of long axes. For NULL,
   prints the error message. */
SB_API void sb_tensor_print(const sb_tensor *t);
/* The same as a string; free it with sb_free. */
SB_API char *sb_tensor_text(const sb_tensor *t);

#endif
