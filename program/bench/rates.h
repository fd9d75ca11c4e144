/* The highest rates of the processor, for bounds of what a step takes. */
#ifndef SOFTBACK_PROGRAM_BENCH_RATES_H
#define SOFTBACK_PROGRAM_BENCH_RATES_H

#include "program/bench/bench.h"

/*
 * The best of some tries, with all threads; negative on failure:
 *     fma                       FLOP/s of multiply-adds in registers
 *     copy BYTES                bytes/s, half of BYTES read and half written, by plain or streaming
 *                               stores, whichever is faster
 *     gemm M N K TA TB          FLOP/s of C (M, N) = A B, TA and TB: whether each is transposed; by
 *                               the built-in product or OpenBLAS, whichever is faster
 *     philox                    words of 32 bits a second, with the library's generator
 */
double bench_rate(const char *words);

#endif
