/* Lesson 2, everyone pays: a solution. */
#include "lesson.h"

void softmax_jacobian(int64_t n, const double *a, double *J)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            J[i * n + j] = a[i] * ((i == j) - a[j]);
}
