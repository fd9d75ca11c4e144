#include "ops/update.h"
#include "ops/plain/real.h"

/* m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2
   w -= rate (m / correction1) / (sqrt(v / correction2) + epsilon)
   (Kingma and Ba 2015); L2 adds decay w to g, AdamW subtracts rate decay w from
   w (Loshchilov and Hutter 2019) */
static bool adam(int64_t n, const struct adam_step *s, const void *g_, void *w_,
                 void *m_, void *v_)
{
    const real *gradient = g_;
    real *w = w_, *m = m_, *v = v_;
    const real b1 = (real)s->beta1, b2 = (real)s->beta2;
    const real rate = (real)s->rate, decay = (real)s->decoupled_decay;
    for (int64_t i = 0; i < n; i++) {
        const real g = (real)s->gradient_scale * gradient[i] +
                       (real)s->coupled_decay * w[i];
        m[i] = b1 * m[i] + (real)(1 - s->beta1) * g;
        v[i] = b2 * v[i] + (real)(1 - s->beta2) * g * g;
        const real root = real_sqrt(v[i] / (real)s->correction2);
        w[i] = w[i] - rate * decay * w[i] -
               rate * (m[i] / (real)s->correction1) / (root + (real)s->epsilon);
    }
    return true;
}

/* u = momentum u + g     w -= rate u; Nesterov: w -= rate (g + momentum u) */
static bool sgd(int64_t n, const struct sgd_step *s, const void *g_, void *w_,
                void *u_)
{
    const real *gradient = g_;
    real *w = w_, *u = u_;
    const real rate = (real)s->rate, momentum = (real)s->momentum;
    for (int64_t i = 0; i < n; i++) {
        const real g =
            (real)s->gradient_scale * gradient[i] + (real)s->decay * w[i];
        u[i] = momentum * u[i] + g;
        w[i] -= rate * (s->nesterov ? g + momentum * u[i] : u[i]);
    }
    return true;
}

/* The sum of x_i^2, and where it is not finite the first x_i that is not. */
static bool squares(int64_t n, const void *x_, double *sum, int64_t *first_bad)
{
    const real *x = x_;
    *sum = 0;
    *first_bad = -1;
    for (int64_t i = 0; i < n; i++)
        *sum += real_value(x[i]) * real_value(x[i]);
    for (int64_t i = 0; !isfinite(*sum) && *first_bad < 0 && i < n; i++)
        if (!isfinite(real_value(x[i])))
            *first_bad = i;
    return true;
}

/* y += x[0] + x[1] + ... */
static bool add(int64_t n, int sources, const void *const x[], void *y_)
{
    real *y = y_;
    for (int64_t i = 0; i < n; i++)
        for (int s = 0; s < sources; s++)
            y[i] += ((const real *)x[s])[i];
    return true;
}

/* y = decay y + (1 - decay) x */
static bool average(int64_t n, double decay, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    for (int64_t i = 0; i < n; i++)
        y[i] = (real)decay * y[i] + (real)(1 - decay) * x[i];
    return true;
}

KERNELS(update) = {adam, sgd, squares, add, average, NULL, NULL, NULL};
