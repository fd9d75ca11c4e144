/* Lesson 3, never build J. The page is teach/lessons/03_never_build_j.md. */
#include "lesson.h"

void softmax_backward(int64_t n, const double *a, const double *g, double *ds)
{
    /* HOLE: ds_j = sum_i g_i J_ij with J_ij = a_i ((i == j) - a_j), in two passes over the row. */
    for (int64_t i = 0; i < n; i++)
        ds[i] = 0;
}
