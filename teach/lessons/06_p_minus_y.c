/* Lesson 6, p - y. The page is teach/lessons/06_p_minus_y.md. */
#include "lesson.h"
#include <math.h>

float cross_entropy(int64_t n, const float *z, int64_t target, float *dz)
{
    /* Two steps, as in the definition: p = softmax(z), then -ln p[target]; and backward through
       both: dp is 0 but for -1 / p[target], and dz = p (dp - sum p dp).

       HOLE: this is right on paper. Make it one step, which is right for large z, too. */
    float max = z[0], sum = 0, average = 0;
    for (int64_t i = 1; i < n; i++)
        max = fmaxf(max, z[i]);
    for (int64_t i = 0; i < n; i++)
        sum += dz[i] = expf(z[i] - max);
    for (int64_t i = 0; i < n; i++)
        dz[i] /= sum; /* p */
    const float loss = -logf(dz[target]), dp = -1 / dz[target];
    average = dz[target] * dp;
    for (int64_t i = 0; i < n; i++)
        dz[i] *= (i == target ? dp : 0) - average;
    return loss;
}
