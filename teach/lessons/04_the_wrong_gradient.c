/* Lesson 4, the wrong gradient. The page is teach/lessons/04_the_wrong_gradient.md. */
#include "lesson.h"

void score_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    /* The usual mistake: the diagonal of J alone. */
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (1 - a[i]) * g[i];

    /* HOLE: when you have looked at the page's other formulas, put the lines above back, and
       subtract the mean of ds from each ds_i. */
}
