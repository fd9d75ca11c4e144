#include "program/bench/bench.h"
#include "tensor/clock.h"
#include <stdlib.h>

enum { LEAST = 3, MOST = 30, WARM = 3 };

double bench_clock(void)
{
    return sb_device_synchronize(sb_device_in_use()) ? clock_seconds() : -1;
}

double bench_since(double begun, bool ok)
{
    const double ended = bench_clock();
    return ok && begun >= 0 && ended >= 0 ? ended - begun : -1;
}

static int time_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Three calls, as the first allocates memory and the second records graphs; one if it is slow. */
static bool time_warm_up(const struct bench *bench, bench_once *once, void *context)
{
    double seconds = 0;
    for (int i = 0; i < (bench->quick ? 1 : WARM) && seconds >= 0 && seconds < 1; i++)
        seconds = once(context);
    return seconds >= 0;
}

double bench_middle(int n, double x[])
{
    qsort(x, (size_t)n, sizeof *x, time_compare);
    return x[n / 2];
}

double bench_median(struct bench *bench, enum bench_limit limit, bench_once *once, void *context)
{
    const double enough = 2;
    double seconds[MOST], rates[MOST];
    int n = 0, most = bench->quick ? 1 : MOST;
    if (!time_warm_up(bench, once, context))
        return -1;
    for (double begun = clock_seconds();
         n < most && (n < LEAST || clock_seconds() - begun < enough); n++) {
        if ((seconds[n] = once(context)) < 0)
            return -1;
        rates[n] = bench_limit_now(bench, limit);
    }
    if (rates[0] > 0)
        bench->limit[limit] = bench_middle(n, rates);
    return bench_middle(n, seconds);
}
