/* The elements of a stored tensor as they are read, for who needs them once and not as a tensor. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_ELEMENTS_H
#define SOFTBACK_TENSOR_SAFETENSORS_ELEMENTS_H

#include "tensor/dtype.h"

struct sb_safetensors;

/* Sees `count` elements from number `first` on, in host memory; false, with a message, ends it. */
typedef bool elements_see(void *context, sb_dtype dtype, int64_t first, int64_t count,
                          const void *elements);

/* Shows all elements of tensor i, a few thousand at a time, as sb_safetensors_tensor reads them. */
bool elements_pass(const struct sb_safetensors *file, int i, elements_see *see, void *context);

#endif
