/* Lesson 5, how to trust it: a solution. */
#include "lesson.h"
#include <math.h>

float check_step(void)
{
    return 1e-2f;
}

bool gradient_holds(lesson_function *f, int64_t n, float *x, const float *gradient)
{
    const float h = check_step();
    float apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        const float kept = x[i];
        x[i] = kept + h;
        float above = f(n, x);
        x[i] = kept - h;
        float below = f(n, x);
        x[i] = kept;
        float difference = (above - below) / (2 * h);
        if (isnan(difference) || isnan(gradient[i])) /* fmaxf passes over a NaN */
            return false;
        apart = fmaxf(apart, fabsf(gradient[i] - difference));
        size = fmaxf(size, fmaxf(fabsf(gradient[i]), fabsf(difference)));
    }
    return apart <= 1e-3f * size;
}
