/*
 * Rows of kernels: one struct of functions for each operation, device and real dtype. Kernels take
 * raw pointers and sizes. ops/<op>.h declares the struct, ops/cpu/<op>.c defines the rows of the
 * CPU, and a plug-in may define the rows of another device.
 *
 * On x86 the CPU kernels are compiled for three instruction sets (baseline, AVX2 with FMA,
 * AVX-512), and the widest one that the processor supports is used; elsewhere there is one set. The
 * plain kernels (ops/plain), for reading and as a reference, exist everywhere.
 */
#ifndef SOFTBACK_OPS_KERNEL_H
#define SOFTBACK_OPS_KERNEL_H

#include "tensor/tensor.h"

/* A function that kernels of every device share. */
#ifdef __cplusplus
#include <cuda_runtime.h>
#define KERNEL_INLINE static inline __host__ __device__
#else
#define KERNEL_INLINE static inline
#endif

enum kernel_set {
    KERNELS_CPU,
    KERNELS_CPU_V3,
    KERNELS_CPU_V4,
    KERNELS_PLAIN,
    KERNELS_CUDA,
    KERNEL_SETS
};

struct kernel_rows {
    const char *operation;
    const void *row[KERNEL_SETS][SB_REAL_DTYPES];
};

#define KERNEL_ROW(op, set)                                                                        \
    {                                                                                              \
        &op##_##set##_f32, &op##_##set##_f64                                                       \
    }
#define KERNEL_ROW_AND_BF16(op, set)                                                               \
    {                                                                                              \
        &op##_##set##_f32, &op##_##set##_f64, &op##_##set##_bf16                                   \
    }
/* Plain kernels are compiled for dual numbers too, except in portable builds. */
#ifdef SOFTBACK_PORTABLE
#define KERNEL_ROW_PLAIN(op) KERNEL_ROW(op, plain)
#define KERNEL_EXTERN_PLAIN(op) extern const struct op##_kernels op##_plain_f32, op##_plain_f64
#else
#define KERNEL_ROW_PLAIN(op)                                                                       \
    {                                                                                              \
        &op##_plain_f32, &op##_plain_f64, NULL, &op##_plain_dual                                   \
    }
#define KERNEL_EXTERN_PLAIN(op)                                                                    \
    extern const struct op##_kernels op##_plain_f32, op##_plain_f64, op##_plain_dual
#endif
#ifdef SOFTBACK_X86_SETS
#define KERNEL_EXTERN(op)                                                                          \
    extern const struct op##_kernels op##_cpu_f32, op##_cpu_f64, op##_cpu_v3_f32, op##_cpu_v3_f64, \
        op##_cpu_v4_f32, op##_cpu_v4_f64;                                                          \
    KERNEL_EXTERN_PLAIN(op)
#define KERNEL_EXTERN_BF16(op)                                                                     \
    extern const struct op##_kernels op##_cpu_bf16, op##_cpu_v3_bf16, op##_cpu_v4_bf16
#define KERNEL_SETS_OF(op, ROW)                                                                    \
    [KERNELS_CPU] = ROW(op, cpu), [KERNELS_CPU_V3] = ROW(op, cpu_v3),                              \
    [KERNELS_CPU_V4] = ROW(op, cpu_v4), [KERNELS_PLAIN] = KERNEL_ROW_PLAIN(op)
#else
#define KERNEL_EXTERN(op)                                                                          \
    extern const struct op##_kernels op##_cpu_f32, op##_cpu_f64;                                   \
    KERNEL_EXTERN_PLAIN(op)
#define KERNEL_EXTERN_BF16(op) extern const struct op##_kernels op##_cpu_bf16
#define KERNEL_SETS_OF(op, ROW) [KERNELS_CPU] = ROW(op, cpu), [KERNELS_PLAIN] = KERNEL_ROW_PLAIN(op)
#endif

/* Defines <op>_rows, once, in ops/<op>.c. The CPU has bf16 rows for a few operations; it computes
   the others in f32 (ops/call.h). */
#define KERNEL_ROWS(op)                                                                            \
    KERNEL_EXTERN(op);                                                                             \
    struct kernel_rows op##_rows = {#op, {KERNEL_SETS_OF(op, KERNEL_ROW)}}
#define KERNEL_ROWS_AND_BF16(op)                                                                   \
    KERNEL_EXTERN(op);                                                                             \
    KERNEL_EXTERN_BF16(op);                                                                        \
    struct kernel_rows op##_rows = {#op, {KERNEL_SETS_OF(op, KERNEL_ROW_AND_BF16)}}
/* For kernels of which the CPU has the plain ones only. */
#define KERNEL_ROWS_PLAIN(op)                                                                      \
    KERNEL_EXTERN_PLAIN(op);                                                                       \
    struct kernel_rows op##_rows = {#op,                                                           \
                                    {[KERNELS_CPU] = KERNEL_ROW_PLAIN(op),                         \
                                     [KERNELS_CPU_V3] = KERNEL_ROW_PLAIN(op),                      \
                                     [KERNELS_CPU_V4] = KERNEL_ROW_PLAIN(op),                      \
                                     [KERNELS_PLAIN] = KERNEL_ROW_PLAIN(op)}}

/* The kernels for x's device and dtype: a struct <op>_kernels; NULL, with a message, when there are
   none. Integers and booleans use the f32 row, whose copying kernels depend on the element size
   only. */
const void *kernel_row(struct kernel_rows *rows, const sb_tensor *x);

/* The same by device and real dtype; NULL, without a message, when there are none. */
const void *kernel_row_if_any(struct kernel_rows *rows, const sb_device *device, sb_dtype dtype);

/* The dtype of row statistics and of scratch for sums: f32 for bf16, otherwise the same dtype. */
static inline sb_dtype dtype_of_sums(sb_dtype dtype)
{
    return dtype == SB_BF16 ? SB_F32 : dtype;
}

/* The instruction set in use on the CPU, and its name: "AVX-512", "AVX2", "baseline", "plain".
   SOFTBACK_KERNELS=plain selects a set by name; the default is the widest one. */
enum kernel_set kernel_cpu_set(void);
const char *kernel_cpu_name(void);

/* The least work for which CPU kernels use several threads (ops/cpu/real.h). */
extern int64_t kernel_parallel_work;

/* The least size of a result for which some of them use streaming stores (ops/cpu/stream.h). */
extern int64_t kernel_streamed_bytes;

/* Uses this set from now on; false when this processor or build lacks it. */
bool kernel_use_cpu_set(enum kernel_set set);

#endif
