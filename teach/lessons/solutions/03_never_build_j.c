/* Lesson 3, never build J: a solution. */
#include "lesson.h"

void softmax_backward(int64_t n, const double *a, const double *g, double *ds)
{
    double average = 0;
    for (int64_t i = 0; i < n; i++)
        average += a[i] * g[i];
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (g[i] - average);
}
