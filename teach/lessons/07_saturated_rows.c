/* Lesson 7, saturated rows. The page is teach/lessons/07_saturated_rows.md. */
#include "lesson.h"
#include <math.h>

double jacobian_length(int64_t n, const double *a)
{
    /* HOLE, first part: the square root of the sum of all J_ij^2, in O(n). */
    return 0;
}

double score_factor(int64_t d)
{
    /* HOLE, second part: q k is a sum of d terms; what makes it of size 1 again? */
    return 1;
}
