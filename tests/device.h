/* The CUDA device of the tests: what SOFTBACK_CUDA names, or else the emulated one. */
#ifndef SOFTBACK_TESTS_DEVICE_H
#define SOFTBACK_TESTS_DEVICE_H

#include "tensor/device.h"

const sb_device *device_cuda(void); /* NULL where there is none */

/* Skips the rest of the test where there is none. */
void device_needed(void);

#endif
