/* A clock that never goes back. */
#ifndef SOFTBACK_TENSOR_CLOCK_H
#define SOFTBACK_TENSOR_CLOCK_H

#include <time.h>

/* Seconds since some moment. */
static inline double clock_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
