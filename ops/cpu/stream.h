/*
 * Streaming (non-temporal) stores, which bypass the caches. A plain store first reads the cache
 * line that it overwrites, which wastes bandwidth when the result is larger than the caches.
 */
#ifndef SOFTBACK_OPS_CPU_STREAM_H
#define SOFTBACK_OPS_CPU_STREAM_H

#include "ops/cpu/vector.h"

/* The longest row, in numbers, that is computed first and then streamed. */
enum { STREAM_ROW = 32768 / sizeof(real) };

/* Whether rows of C, of whole vectors, are streamed to y. Small results stay in the caches for the
   next operation. */
static inline bool streams(int64_t rows, int64_t C, const real *y)
{
    const bool is_large = rows * C * (int64_t)sizeof(real) >= kernel_streamed_bytes;
    return is_large && C % LANES == 0 && C <= STREAM_ROW && (uintptr_t)y % VECTOR_BYTES == 0;
}

/* Stores to an aligned address. Uses compiler builtins, because including immintrin.h takes longer
   than compiling a kernel. */
static inline void vector_stream(real *to, vector x)
{
#if !defined(__x86_64__)
    vector_store(to, x);
#elif defined(__clang__)
    typedef real whole __attribute__((vector_size(VECTOR_BYTES)));
    __builtin_nontemporal_store((whole)x, (whole *)(void *)to);
#else
    typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
#if VECTOR_BYTES == 64
    __builtin_ia32_movntps512((float *)(void *)to, (floats)x);
#elif VECTOR_BYTES == 32
    __builtin_ia32_movntps256((float *)(void *)to, (floats)x);
#else
    __builtin_ia32_movntps((float *)(void *)to, (floats)x);
#endif
#endif
}

/* Where a row of y is computed: in `made` if it is streamed afterwards, else in its place. */
static inline real *stream_begin(bool streamed, real made[STREAM_ROW], real *y)
{
    return streamed ? made : y;
}

static inline void stream_row(bool streamed, int64_t C, const real made[STREAM_ROW], real *y)
{
    for (int64_t c = 0; streamed && c < C; c += LANES)
        vector_stream(y + c, vector_load(made + c));
}

/* Called once by each thread: makes its streamed data visible to other threads. */
static inline void stream_end(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

#endif
