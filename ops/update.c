#include "ops/update.h"

KERNEL_ROWS(update);
