/* Lesson 9, online softmax: a solution. */
#include "lesson.h"
#include <math.h>

void online_add(struct online *state, int64_t n, const double *s, const double *v)
{
    double max = state->max;
    for (int64_t j = 0; j < n; j++)
        max = fmax(max, s[j]);
    if (max == -INFINITY)
        return; /* nothing but blocked keys so far */
    const double rescale = exp(state->max - max);
    state->max = max;
    state->sum *= rescale;
    state->y *= rescale;
    for (int64_t j = 0; j < n; j++) {
        double e = exp(s[j] - max);
        state->sum += e;
        state->y += e * v[j];
    }
}

void online_backward(const struct online *end, double dy, int64_t n, const double *s,
                     const double *v, double *ds, double *dv)
{
    const double average = dy * end->y / end->sum;
    for (int64_t j = 0; j < n; j++) {
        double a = exp(s[j] - end->max) / end->sum;
        dv[j] = a * dy;
        ds[j] = a * (dy * v[j] - average);
    }
}
