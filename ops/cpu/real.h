/*
 * Included first by every file of CPU kernels. Each file is compiled once for each real dtype and
 * instruction set, with
 *     REAL           float or double
 *     REAL_IS_FLOAT  1 or 0
 *     ROW            cpu_f32, cpu_v3_f64, ...: the suffix of its row
 *     SET            cpu, cpu_v3, ...: what that of a row of bf16 begins with
 *     VECTOR_BYTES   the width of a vector register: 16, 32 or 64
 *
 * Sums use `#pragma omp simd reduction(+ : sum)`, which lets the compiler add in vector lanes; a
 * portable build ignores the pragma and adds in order.
 */
#ifndef SOFTBACK_OPS_CPU_REAL_H
#define SOFTBACK_OPS_CPU_REAL_H

#include "tensor/dtype.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef REAL real;

#define CPU_PASTE_(name, row) name##_##row
#define CPU_PASTE(name, row) CPU_PASTE_(name, row)
/* A name for this dtype and instruction set, for functions that several files share. */
#define CPU(name) CPU_PASTE(name, ROW)
/* The definition of this set's row: KERNELS(softmax) = {forward, backward}; */
#define KERNELS(op) const struct op##_kernels CPU(op)
/* That of its row of bf16, which is compiled with f32's. */
#define KERNELS_BF16(op) const struct op##_kernels CPU_PASTE(CPU_PASTE(op, SET), bf16)

/* For functions that are called once for many elements: inlining them in every loop would take
   compilers longer than the kernels themselves. */
#define OUTLINED static __attribute__((noinline, unused))

/* Work, in elements, below which a second thread costs more than it saves. It selects one thread or
   several, never how work is divided; tests set it to 0. A parallel region of one thread also costs
   0.4 us, so the kernels of a decoding step enter none below this limit. */
extern int64_t kernel_parallel_work;
#define PARALLEL_WORK kernel_parallel_work

static inline real real_sqrt(real x)
{
    return REAL_IS_FLOAT ? (real)sqrtf((float)x) : (real)sqrt((double)x);
}

static inline real real_abs(real x)
{
    return x < 0 ? -x : x;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Rows of bf16, which kernels compute in f32 and round once. */
static inline void bf16_widen(int64_t n, const uint16_t *restrict x, real *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_widen(x[i]);
}

static inline void bf16_round(int64_t n, const real *restrict x, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_round((float)x[i]);
}

/* A gradient: x, rounded, or what y holds plus x. */
static inline void bf16_add(int64_t n, const real *restrict x, bool fresh, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_bf16_round(fresh ? (float)x[i] : sb_bf16_widen(y[i]) + (float)x[i]);
}

#endif
