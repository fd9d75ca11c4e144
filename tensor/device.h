/*
 * A device: it allocates memory for tensors and copies data. The CPU is always available.
 *
 * Each operation has a row of kernels for each device (ops/kernel.h); a device has only the
 * functions that tensors need.
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
 * The first GPU that the CUDA driver lists, or the one that sb_choose_cuda has chosen. NULL, with
 * the reason as the message, when there is no GPU, no driver, or no matching libsoftback_cuda.so.
 *
 * This plug-in is searched for in the folder of the library or program that contains this function,
 * then on the system's library path. The environment variable SOFTBACK_CUDA names another file;
 * "emulated" stands for libsoftback_cuda_emulated.so, which runs the kernels on the CPU: slow, but
 * with memory and race checks.
 *
 * A GPU is of one thread at a time: threads that share it take turns.
 */
SB_API const sb_device *sb_device_cuda(void);

/*
 * Makes sb_device_cuda the GPU of this number, as the driver lists them from 0 on. A process uses
 * one GPU: fails after the first sb_device_cuda with another number, and for a negative number; a
 * GPU that does not exist is reported by sb_device_cuda.
 */
SB_API bool sb_choose_cuda(int number);

/* A short description of a device, such as its model. */
SB_API const char *sb_device_description(const sb_device *device);

/* Sets the device on which constructors make tensors, parameters and batches from now on, in all
   threads; NULL stands for the CPU, the default. */
SB_API void sb_use_device(const sb_device *device);
SB_API const sb_device *sb_device_in_use(void);

/* Waits for all work queued on a device; false, with a message, when some of it failed. */
SB_API bool sb_device_synchronize(const sb_device *device);

/* Memory statistics of a device, as the library counts them. */
typedef struct {
    int64_t live_blocks;  /* blocks in use */
    int64_t live_bytes;   /* bytes in use */
    int64_t peak_bytes;   /* the largest live_bytes since the last reset */
    int64_t system_calls; /* number of allocations from the system since the start */
} sb_memory;

SB_API sb_memory sb_device_memory(const sb_device *device);
SB_API void sb_device_reset_peak(const sb_device *device);
SB_API void sb_device_trim(const sb_device *device); /* returns cached memory to the system */

/* Frees a string or an array that the library returned; NULL is allowed. */
SB_API void sb_free(void *memory);

/* Sets the number of threads that kernels use (default: one for each core). Results do not depend
   on it. Fails below 1, and when so many threads cannot be made; then it stays what it was. Without
   this call, kernels use as many as can be made. A build without OpenMP has one unless more are
   set, and uses them for shares of a batch and for decoding alone. */
SB_API bool sb_set_threads(int threads);
SB_API int sb_threads(void);

#endif
