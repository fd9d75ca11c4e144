/* Lesson 5, how to trust it. The page is teach/lessons/05_how_to_trust_it.md. */
#include "lesson.h"
#include <math.h>

float check_step(void)
{
    /* HOLE, first part: h, for numbers near 1 in float. The test prints the error of each h. */
    return 1;
}

bool gradient_holds(lesson_function *f, int64_t n, float *x, const float *gradient)
{
    /* HOLE, second part: compare each gradient[i] with (f(x + h) - f(x - h)) / 2h, h being added to
       x[i] alone. Restore x. */
    return true;
}
