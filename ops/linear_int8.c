#include "ops/linear_int8.h"

KERNEL_ROWS(linear_int8);
