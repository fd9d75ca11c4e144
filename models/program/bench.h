/* What the parts of softback bench share. */
#ifndef SOFTBACK_MODELS_PROGRAM_BENCH_H
#define SOFTBACK_MODELS_PROGRAM_BENCH_H

#include <stdbool.h>

double bench_now(void);                     /* seconds */
double bench_median(int n, double *values); /* sorts them */
double bench_peak(void);                    /* multiply-adds of all threads, in FLOP/s */

/* Attention, tiled and composed, forward and backward. */
bool bench_attention(void);

#endif
