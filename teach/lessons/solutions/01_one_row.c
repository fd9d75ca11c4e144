/* Lesson 1, one row: a solution. */
#include "lesson.h"
#include <math.h>

void softmax_row(int64_t n, const double *x, double *y)
{
    double max = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        max = fmax(max, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        y[i] /= sum;
}
