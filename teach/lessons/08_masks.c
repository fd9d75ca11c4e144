/* Lesson 8, masks. The page is teach/lessons/08_masks.md. */
#include "lesson.h"
#include <math.h>

void masked_softmax(int64_t n, const double *s, const bool *keep, double *a)
{
    /* The usual way: a large negative number in place of what is blocked.

       HOLE, first part: make it right for all rows. */
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        a[i] = keep[i] ? s[i] : -1e9;
        max = fmax(max, a[i]);
    }
    for (int64_t i = 0; i < n; i++)
        sum += a[i] = exp(a[i] - max);
    for (int64_t i = 0; i < n; i++)
        a[i] /= sum;
}

void masked_backward(int64_t n, const bool *keep, const double *a, const double *g, double *ds)
{
    /* HOLE, second part: g may be anything where a is blocked. */
    double average = 0;
    for (int64_t i = 0; i < n; i++)
        average += a[i] * g[i];
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (g[i] - average);
}
