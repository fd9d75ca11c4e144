#include "ops/decoding.h"

KERNEL_ROWS(decoding);
