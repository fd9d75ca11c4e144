/* What tests see of the threads of kernels. */
#ifndef SOFTBACK_TENSOR_THREADS_H
#define SOFTBACK_TENSOR_THREADS_H

#include <stdint.h>

/* How often a parallel region was handed to OpenMP, and did not run as a plain call. */
int64_t threads_entered(void);

#endif
