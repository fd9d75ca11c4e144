/* Lesson 7, saturated rows: a solution. */
#include "lesson.h"
#include <math.h>

double jacobian_length(int64_t n, const double *a)
{
    double squares = 0, cubes = 0;
    for (int64_t i = 0; i < n; i++) {
        squares += a[i] * a[i];
        cubes += a[i] * a[i] * a[i];
    }
    return sqrt(fmax(0, squares - 2 * cubes + squares * squares));
}

double score_factor(int64_t d)
{
    return 1 / sqrt((double)d);
}
