#include "ops/decoding.h"

KERNEL_ROWS_PLAIN(decoding); /* the CPU decodes in other ways (models/decoding) */
