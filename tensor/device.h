/*
 * A device: where data lies and how it moves. The CPU is always there.
 *
 * Each operation has a row of kernels for each device (ops/kernel.h); this table holds only what
 * tensors need.
 */
#ifndef SOFTBACK_TENSOR_DEVICE_H
#define SOFTBACK_TENSOR_DEVICE_H

#include "error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sb_device sb_device;

/* The processor and its memory. */
SB_API const sb_device *sb_device_cpu(void);
SB_API const char *sb_device_name(const sb_device *device);

/*
 * The GPU: the first one that the CUDA driver shows. NULL, with the reason as the message, where
 * there is none, or no driver, or no libsoftback_cuda.so that fits.
 *
 * That plug-in is looked for beside the library or the program that holds this function, then where
 * the system looks for libraries. The environment's SOFTBACK_CUDA names another file; "emulated"
 * stands for libsoftback_cuda_emulated.so, whose kernels run on the processor: slow and checked.
 */
SB_API const sb_device *sb_device_cuda(void);

/* What a device is, in a few words. */
SB_API const char *sb_device_description(const sb_device *device);

/* Where constructors make tensors, parameters and batches from now on, in all threads; NULL stands
   for the CPU, which is the default. */
SB_API void sb_use_device(const sb_device *device);
SB_API const sb_device *sb_device_in_use(void);

/* Waits for what was queued on a device; false, with a message, when something of it failed. */
SB_API bool sb_device_synchronize(const sb_device *device);

/* What a device's memory holds, in bytes, counted by the library itself. */
typedef struct {
    int64_t live_blocks;  /* blocks in use */
    int64_t live_bytes;   /* bytes in use */
    int64_t peak_bytes;   /* the most that was in use since the last reset */
    int64_t system_calls; /* how often the system was asked for memory, since the start */
} sb_memory;

SB_API sb_memory sb_device_memory(const sb_device *device);
SB_API void sb_device_reset_peak(const sb_device *device);
SB_API void sb_device_trim(const sb_device *device); /* gives cached memory back to the system */

/* Frees a text or an array that the library returned; NULL is allowed. */
SB_API void sb_free(void *memory);

/* The number of threads that kernels use (default: one for each core); results never depend on
   it. Fails below 1. A build without OpenMP always has one thread. */
SB_API bool sb_set_threads(int threads);
SB_API int sb_threads(void);

#endif
