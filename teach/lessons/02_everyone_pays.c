/* Lesson 2, everyone pays. The page is teach/lessons/02_everyone_pays.md. */
#include "lesson.h"

void softmax_jacobian(int64_t n, const double *a, double *J)
{
    /* HOLE: J[i * n + j] = d a_i / d s_j, by a alone. */
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            J[i * n + j] = 0;
}
