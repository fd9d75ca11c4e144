#include "ops/update.h"
#include "ops/cpu/real.h"

static bool update_adam(int64_t n, const struct adam_step *s, const void *g_, void *w_, void *m_,
                        void *v_)
{
    const real *g = g_;
    real *w = w_, *m = m_, *v = v_;
    const real b1 = (real)s->beta1, b2 = (real)s->beta2, a1 = (real)(1 - s->beta1),
               a2 = (real)(1 - s->beta2);
    const real scale = (real)s->gradient_scale, l2 = (real)s->coupled_decay;
    const real keep = (real)(1 - s->rate * s->decoupled_decay);
    const real rate = (real)(s->rate / s->correction1), epsilon = (real)s->epsilon;
    const real root = (real)(1 / sqrt(s->correction2));
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (int64_t i = 0; i < n; i++) {
        real gradient = scale * g[i] + l2 * w[i];
        m[i] = b1 * m[i] + a1 * gradient;
        v[i] = b2 * v[i] + a2 * gradient * gradient;
        w[i] = keep * w[i] - rate * m[i] / (real_sqrt(v[i]) * root + epsilon);
    }
    return true;
}

static bool update_sgd(int64_t n, const struct sgd_step *s, const void *g_, void *w_, void *u_)
{
    const real *g = g_;
    real *w = w_, *u = u_;
    const real rate = (real)s->rate, momentum = (real)s->momentum, decay = (real)s->decay;
    const real scale = (real)s->gradient_scale, ahead = s->nesterov ? momentum : 1;
    const real now = s->nesterov ? 1 : 0;
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (int64_t i = 0; i < n; i++) {
        real gradient = scale * g[i] + decay * w[i];
        u[i] = momentum * u[i] + gradient;
        w[i] -= rate * (now * gradient + ahead * u[i]);
    }
    return true;
}

/* The order of a sum is fixed by its slabs, whatever the thread count. */
enum { SLAB = 1 << 14, SLABS = 1 << 12, STREAMS = 4 };

static double update_square(real x)
{
    return (double)x * (double)x;
}

static double update_slab_squares(int64_t n, const real *x)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += update_square(x[i]);
    return sum;
}

/* Four slabs side by side: one stream of reads uses a fraction of the memory's bandwidth. */
static void update_streams(const real *x, double partial[STREAMS])
{
    const real *y = x + SLAB, *z = y + SLAB, *t = z + SLAB;
    double a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
    for (int64_t i = 0; i < SLAB; i++) {
        a += update_square(x[i]);
        b += update_square(y[i]);
        c += update_square(z[i]);
        d += update_square(t[i]);
    }
    partial[0] = a, partial[1] = b, partial[2] = c, partial[3] = d;
}

/* The sums of n numbers' slabs, STREAMS at most. */
static void update_partial_squares(int64_t n, const real *x, double *partial)
{
    if (n == STREAMS * SLAB)
        update_streams(x, partial);
    else
        for (; n > 0; n -= SLAB, x += SLAB)
            *partial++ = update_slab_squares(n < SLAB ? n : SLAB, x);
}

static bool update_squares(int64_t n, const void *x_, double *sum, int64_t *first_bad)
{
    const real *x = x_;
    *sum = 0;
    *first_bad = -1;
    double partial[SLABS];
    for (int64_t begin = 0; begin < n; begin += SLABS * (int64_t)SLAB) {
        int64_t left = n - begin, slabs = (left + SLAB - 1) / SLAB;
        slabs = slabs < SLABS ? slabs : SLABS;
#pragma omp parallel for schedule(static) if (left > PARALLEL_WORK)
        for (int64_t i = 0; i < slabs; i += STREAMS) {
            const int64_t from = begin + i * SLAB, most = STREAMS * (int64_t)SLAB;
            update_partial_squares(n - from < most ? n - from : most, x + from, partial + i);
        }
        for (int64_t i = 0; i < slabs; i++)
            *sum += partial[i];
    }
    for (int64_t i = 0; !isfinite(*sum) && *first_bad < 0 && i < n; i++)
        if (!isfinite(x[i]))
            *first_bad = i;
    return true;
}

/* A part of y stays in the cache while all x are added to it. */
static bool update_add(int64_t n, int sources, const void *const x[], void *y_)
{
    enum { PART = 2048 };
    real *y = y_;
#pragma omp parallel for schedule(static) if (n > PARALLEL_WORK)
    for (int64_t from = 0; from < n; from += PART)
        for (int s = 0; s < sources; s++) {
            const real *of = x[s];
            const int64_t end = from + PART < n ? from + PART : n;
#pragma omp simd
            for (int64_t i = from; i < end; i++)
                y[i] += of[i];
        }
    return true;
}

static bool update_average(int64_t n, double decay, const void *x_, void *y_)
{
    const real *x = x_;
    real *y = y_;
    const real old = (real)decay, new = (real)(1 - decay);
#pragma omp parallel for simd schedule(static) if (n > PARALLEL_WORK)
    for (int64_t i = 0; i < n; i++)
        y[i] = old * y[i] + new *x[i];
    return true;
}

KERNELS(update) = {update_adam,    update_sgd, update_squares, update_add,
                   update_average, NULL,       NULL,           NULL};
