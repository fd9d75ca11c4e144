/* Streams the elements of a stored tensor, for callers that need no tensor. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_ELEMENTS_H
#define SOFTBACK_TENSOR_SAFETENSORS_ELEMENTS_H

#include "tensor/dtype.h"

struct sb_safetensors;

/* Receives `count` elements from number `first` on, in host memory; false, with a message,
   stops. */
typedef bool elements_see(void *context, sb_dtype dtype, int64_t first, int64_t count,
                          const void *elements);

/* Passes all elements of tensor i, a few thousand at a time, converted as by
   sb_safetensors_tensor. */
bool elements_pass(const struct sb_safetensors *file, int i, elements_see *see, void *context);

#endif
