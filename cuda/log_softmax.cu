#include "cuda/softmax_row.cuh"
#include "ops/softmax.h"

KERNELS_AND_BF16(log_softmax, softmax_forward<T, true>, softmax_backward<T, true>, nullptr);
