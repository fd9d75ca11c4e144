/* Lesson 9, online softmax: a solution. */
#include "lesson.h"
#include <math.h>

void online_add(struct online *state, int64_t n, const double *s, const double *v)
{
    double m = state->m;
    for (int64_t j = 0; j < n; j++)
        m = fmax(m, s[j]);
    if (m == -INFINITY)
        return; /* nothing but blocked keys so far */
    const double rescale = exp(state->m - m);
    state->m = m;
    state->l *= rescale;
    state->o *= rescale;
    for (int64_t j = 0; j < n; j++) {
        double p = exp(s[j] - m);
        state->l += p;
        state->o += p * v[j];
    }
}

void online_backward(const struct online *end, double dy, int64_t n, const double *s,
                     const double *v, double *ds, double *dv)
{
    for (int64_t j = 0; end->l == 0 && j < n; j++)
        ds[j] = dv[j] = 0; /* all keys are blocked */
    if (end->l == 0)
        return;
    const double average = dy * end->o / end->l;
    for (int64_t j = 0; j < n; j++) {
        double a = exp(s[j] - end->m) / end->l;
        dv[j] = a * dy;
        ds[j] = a * (dy * v[j] - average);
    }
}
