/*
 * The devices of the tests. SOFTBACK_TEST_DEVICE=cuda lets every claim make its tensors on the CUDA
 * device, which is what SOFTBACK_CUDA names, or else the emulated one.
 */
#ifndef SOFTBACK_TESTS_SUPPORT_DEVICE_H
#define SOFTBACK_TESTS_SUPPORT_DEVICE_H

#include "ops/kernel.h"
#include "tensor/device.h"

const sb_device *device_cuda(void); /* NULL where there is none */

/* The CUDA device, if this test has asked for it; otherwise NULL. */
const sb_device *device_opened(void);

/* Skips the rest of the test where there is none. */
void device_needed(void);

/* Makes what follows in this claim happen on the CPU: the claim says something about host memory,
   threads, instruction sets, or what only the CPU reports at once. */
void on_the_cpu(void);

/* Whether the device in use reports a bad id, length or weight at once, as the CPU does; another
   names it at the next download (tests/tensor/test_devices.c). */
bool told_at_once(void);

/* Whether tensors are made on a device whose kernels are emulated: slow claims draw fewer cases. */
bool test_slow_device(void);

/* How many of n cases to try: one in eight where kernels are emulated, one in forty where they are
   watched by a sanitizer besides. */
int test_some(int n);
bool test_sanitized(void);

/* Skips the rest of the test where kernels are emulated: it would take too long. */
void fast_device_needed(void);

/* Uses this set of the CPU's kernels; another device has one set, which stands for the first. False
   where there is none. */
bool test_kernel_set(enum kernel_set set);

/* What the memory of the device in use holds, and its blocks together with the host's. */
sb_memory memory_in_use(void);
int64_t live_blocks(void);

#endif
