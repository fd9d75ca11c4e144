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
