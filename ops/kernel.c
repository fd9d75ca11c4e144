#include "ops/kernel.h"
#include "ops/decoding.h"
#include "ops/linear_int8.h"
#include "ops/update.h"
#include "tensor/storage.h"
#include <stdlib.h>
#include <string.h>

int64_t kernel_parallel_work = 1 << 15, kernel_streamed_bytes = 1 << 24;

static bool kernel_has_set(enum kernel_set set)
{
#ifdef SOFTBACK_X86_SETS
    if (set == KERNELS_CPU_V4)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (set == KERNELS_CPU_V3)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
#endif
    return set == KERNELS_CPU || set == KERNELS_PLAIN;
}

static const char *const names[] = {[KERNELS_CPU] = "baseline",
                                    [KERNELS_CPU_V3] = "AVX2",
                                    [KERNELS_CPU_V4] = "AVX-512",
                                    [KERNELS_PLAIN] = "plain"};

static _Atomic int chosen = -1;
static _Atomic bool unknown; /* what SOFTBACK_KERNELS names */

/* NULL where it is not set; a page of WebAssembly has no environment. */
static const char *kernel_wanted_name(void)
{
#ifdef __wasi__
    return NULL;
#else
    const char *name = getenv("SOFTBACK_KERNELS");
    return name && *name ? name : NULL;
#endif
}

static enum kernel_set kernel_choose_set(void)
{
    const char *name = kernel_wanted_name();
    for (enum kernel_set set = KERNELS_CPU; name && set <= KERNELS_PLAIN; set++)
        if (strcmp(names[set], name) == 0 && kernel_has_set(set))
            return set;
    unknown = name != NULL;
    return kernel_has_set(KERNELS_CPU_V4)   ? KERNELS_CPU_V4
           : kernel_has_set(KERNELS_CPU_V3) ? KERNELS_CPU_V3
                                            : KERNELS_CPU;
}

enum kernel_set kernel_cpu_set(void)
{
    if (chosen < 0)
        chosen = (int)kernel_choose_set();
    return (enum kernel_set)chosen;
}

bool kernel_use_cpu_set(enum kernel_set set)
{
    if (!kernel_has_set(set))
        return false;
    chosen = (int)set;
    unknown = false;
    return true;
}

const char *kernel_cpu_name(void)
{
    return names[kernel_cpu_set()];
}

const void *kernel_row_if_any(struct kernel_rows *rows, const sb_device *device, sb_dtype dtype)
{
    enum kernel_set set = device->kind != DEVICE_CPU ? KERNELS_CUDA
                          : dtype == SB_DUAL         ? KERNELS_PLAIN
                                                     : kernel_cpu_set();
    if (set == KERNELS_CUDA)
        device->enter();
    if (set == KERNELS_CUDA && !rows->row[set][dtype])
        rows->row[set][dtype] = device->row(rows->operation, dtype);
    return rows->row[set][dtype];
}

static void *kernel_fail_unknown_set(const char *operation)
{
    return sb_fail("%s: SOFTBACK_KERNELS is \"%s\"; here it may be plain, baseline%s%s", operation,
                   kernel_wanted_name(), kernel_has_set(KERNELS_CPU_V3) ? ", AVX2" : "",
                   kernel_has_set(KERNELS_CPU_V4) ? ", AVX-512" : "");
}

const void *kernel_row(struct kernel_rows *rows, const sb_tensor *x)
{
    const void *row =
        kernel_row_if_any(rows, x->device, sb_dtype_is_real(x->dtype) ? x->dtype : SB_F32);
    if (unknown)
        return kernel_fail_unknown_set(rows->operation);
    if (!row)
        sb_fail("%s: no kernel for %s on %s", rows->operation, sb_dtype_name(x->dtype),
                x->device->name);
    return row;
}

/* Kernels without an operation. */
KERNEL_ROWS_PLAIN(decoding); /* the CPU decodes in other ways (models/decoding) */
KERNEL_ROWS(linear_int8);
KERNEL_ROWS(update);
