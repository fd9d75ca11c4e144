/* Lesson 1, one row. The page is teach/lessons/01_one_row.md. */
#include "lesson.h"
#include <math.h>

void softmax_row(int64_t n, const double *x, double *y)
{
    /* HOLE: y_i = exp(x_i) / sum_j exp(x_j), for any finite x. */
    for (int64_t i = 0; i < n; i++)
        y[i] = 0;
}
