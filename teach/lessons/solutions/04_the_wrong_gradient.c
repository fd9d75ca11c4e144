/* Lesson 4, the wrong gradient: a solution. */
#include "lesson.h"

void score_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (1 - a[i]) * g[i];

    float mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += ds[i] / (float)n;
    for (int64_t i = 0; i < n; i++)
        ds[i] -= mean;
}
