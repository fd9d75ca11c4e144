#include "models/program/bench.h"
#include "ops/gemm.h"
#include <stdlib.h>
#include <time.h>

double bench_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(int n, double *values)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

double bench_peak(void)
{
    enum { ROUNDS = 3, LENGTH = 5000000 };
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    double best = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double begun = bench_now(), operations = 0;
#pragma omp parallel reduction(+ : operations)
        operations += kernels->peak(LENGTH);
        double rate = operations / (bench_now() - begun);
        best = rate > best ? rate : best;
    }
    return best;
}
