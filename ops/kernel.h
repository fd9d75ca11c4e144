/*
 * Rows of kernels: for each operation, device and real dtype one struct of functions, with raw
 * pointers and sizes as arguments. ops/<op>.h declares the struct, ops/cpu/<op>.c fills the
 * CPU's rows, a plug-in may fill those of another device.
 *
 * On x86 the CPU's kernels are compiled for three instruction sets (the baseline, AVX2 with FMA,
 * AVX-512), and the widest that the processor has is used; elsewhere there is one set. Everywhere
 * there are the plain ones (ops/plain), to be read and to compare with.
 */
#ifndef SOFTBACK_OPS_KERNEL_H
#define SOFTBACK_OPS_KERNEL_H

#include "tensor/tensor.h"

/* A function that kernels of every device include. */
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
#ifdef SOFTBACK_X86_SETS
#define KERNEL_EXTERN(op)                                                                          \
    extern const struct op##_kernels op##_cpu_f32, op##_cpu_f64, op##_cpu_v3_f32, op##_cpu_v3_f64, \
        op##_cpu_v4_f32, op##_cpu_v4_f64, op##_plain_f32, op##_plain_f64
#define KERNEL_EXTERN_BF16(op)                                                                     \
    extern const struct op##_kernels op##_cpu_bf16, op##_cpu_v3_bf16, op##_cpu_v4_bf16
#define KERNEL_SETS_OF(op, ROW)                                                                    \
    [KERNELS_CPU] = ROW(op, cpu), [KERNELS_CPU_V3] = ROW(op, cpu_v3),                              \
    [KERNELS_CPU_V4] = ROW(op, cpu_v4), [KERNELS_PLAIN] = KERNEL_ROW(op, plain)
#else
#define KERNEL_EXTERN(op)                                                                          \
    extern const struct op##_kernels op##_cpu_f32, op##_cpu_f64, op##_plain_f32, op##_plain_f64
#define KERNEL_EXTERN_BF16(op) extern const struct op##_kernels op##_cpu_bf16
#define KERNEL_SETS_OF(op, ROW)                                                                    \
    [KERNELS_CPU] = ROW(op, cpu), [KERNELS_PLAIN] = KERNEL_ROW(op, plain)
#endif

/* Defines <op>_rows, once, in ops/<op>.c; the CPU computes most operations on bf16 in f32
   (ops/call.h), and has rows of its own for some. */
#define KERNEL_ROWS(op)                                                                            \
    KERNEL_EXTERN(op);                                                                             \
    struct kernel_rows op##_rows = {#op, {KERNEL_SETS_OF(op, KERNEL_ROW)}}
#define KERNEL_ROWS_AND_BF16(op)                                                                   \
    KERNEL_EXTERN(op);                                                                             \
    KERNEL_EXTERN_BF16(op);                                                                        \
    struct kernel_rows op##_rows = {#op, {KERNEL_SETS_OF(op, KERNEL_ROW_AND_BF16)}}

/* The kernels for data like x: a struct <op>_kernels; NULL, with a message, when there are none.
   Integers and booleans are served by the f32 row, whose copying kernels go by element size. */
const void *kernel_row(struct kernel_rows *rows, const sb_tensor *x);

/* The same by device and real dtype; NULL, without a message, when there are none. */
const void *kernel_row_if_any(struct kernel_rows *rows, const sb_device *device, sb_dtype dtype);

/* The dtype of what kernels keep of elements of this dtype without rounding it: statistics of rows,
   and scratch for sums. f32 of bf16. */
static inline sb_dtype dtype_of_sums(sb_dtype dtype)
{
    return dtype == SB_BF16 ? SB_F32 : dtype;
}

/* The set in use on the CPU, and what it is called: "AVX-512", "AVX2", "baseline", "plain".
   SOFTBACK_KERNELS=plain chooses one by its name; without it, it is the widest there is. */
enum kernel_set kernel_cpu_set(void);
const char *kernel_cpu_name(void);

/* The work from which on the CPU's kernels use several threads (ops/cpu/real.h). */
extern int64_t kernel_parallel_work;

/* The size of a result from which on some of them store past the caches (ops/cpu/stream.h). */
extern int64_t kernel_streamed_bytes;

/* Uses this set from now on; false when this processor or build lacks it. */
bool kernel_use_cpu_set(enum kernel_set set);

#endif
