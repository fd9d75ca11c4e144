/* Lesson 8, masks: a solution. */
#include "lesson.h"
#include <math.h>

void masked_softmax(int64_t n, const double *s, const bool *keep, double *a)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        if (keep[i])
            max = fmax(max, s[i]);
    for (int64_t i = 0; i < n; i++)
        sum += a[i] = keep[i] ? exp(s[i] - max) : 0;
    for (int64_t i = 0; i < n; i++)
        a[i] = keep[i] ? a[i] / sum : 0;
}

void masked_backward(int64_t n, const bool *keep, const double *a, const double *g, double *ds)
{
    double average = 0;
    for (int64_t i = 0; i < n; i++)
        average += keep[i] ? a[i] * g[i] : 0;
    for (int64_t i = 0; i < n; i++)
        ds[i] = keep[i] ? a[i] * (g[i] - average) : 0;
}
