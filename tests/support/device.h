/*
 * The devices of the tests. With SOFTBACK_TEST_DEVICE=cuda every test makes its tensors on the CUDA
 * device that SOFTBACK_CUDA names, or else on the emulated one; tests of the CPU alone are skipped
 * there, as tests of the device are elsewhere.
 */
#ifndef SOFTBACK_TESTS_SUPPORT_DEVICE_H
#define SOFTBACK_TESTS_SUPPORT_DEVICE_H

#include "ops/kernel.h"
#include "subprojects/emulator/include/emulator_work.h"
#include "tensor/device.h"

const sb_device *device_cuda(void); /* NULL where there is none */

/* The CUDA device if it is the device of this run; otherwise NULL. */
const sb_device *device_opened(void);

int64_t device_uses(void); /* how often device_cuda was called */

bool device_of_run(void); /* whether the run has SOFTBACK_TEST_DEVICE=cuda */

/* Skips the rest of the test elsewhere: it is about the device. */
void device_needed(void);

/* Runs the rest of this test on the CPU: it is about host memory, threads, instruction sets, or
   failures that only the CPU reports immediately. */
void on_the_cpu(void);

/* Whether the device in use is emulated. */
bool test_slow_device(void);

bool test_sanitized(void);

/* What the device was asked to do until now (emulator_work.h); skips the rest of the test
   unless it is emulated. */
struct emulator_work device_work(void);

/* A number that grows with whatever is asked of the open device; -1 where nobody counts. */
int64_t device_requests(void);

/* Uses this set of CPU kernels; other devices have one set, which counts as the first. False if the
   set does not exist. */
bool test_kernel_set(enum kernel_set set);

/* Each set up to this one that exists, and then the usual one again:
   for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) ... with s.set ... */
struct sets {
    enum kernel_set set, last, usual;
    bool begun;
};
struct sets sets_up_to(enum kernel_set last);
bool next_set(struct sets *sets);

/* The memory statistics of the device in use, and the number of its and the host's live blocks. */
sb_memory memory_in_use(void);
int64_t live_blocks(void);

#endif
