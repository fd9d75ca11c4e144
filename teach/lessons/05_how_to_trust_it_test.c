/* The error of each h in float, and whether gradient_holds distinguishes right gradients from
 * wrong. */
#include "lesson.h"
#include <complex.h>
#include <math.h>
#include <string.h>

enum { N = 6 };
static const float start[N] = {0.9f, -0.4f, 1.3f, 0.2f, -1.1f, 0.6f};
static const float weight[N] = {1.2f, 0.4f, -0.7f, 0.9f, 0.3f, -0.5f};
static float size_of_f = 1;

static void softmax(int64_t n, const float *x, float *a)
{
    float max = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        max = fmaxf(max, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += a[i] = expf(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        a[i] /= sum;
}

/* f(x) = size sum_i w_i softmax(x)_i */
static float f(int64_t n, const float *x)
{
    float a[N], y = 0;
    softmax(n, x, a);
    for (int64_t i = 0; i < n; i++)
        y += weight[i] * a[i];
    return size_of_f * y;
}

static void true_gradient(float *ds)
{
    float a[N], average = 0;
    softmax(N, start, a);
    for (int i = 0; i < N; i++)
        average += a[i] * weight[i];
    for (int i = 0; i < N; i++)
        ds[i] = size_of_f * a[i] * (weight[i] - average);
}

/* The error of the right gradient with this h: max |gradient - difference| / max |gradient|. */
static float error_with(float h)
{
    float ds[N], apart = 0, most = 0;
    true_gradient(ds);
    for (int i = 0; i < N; i++) {
        float x[N];
        memcpy(x, start, sizeof x);
        x[i] = start[i] + h;
        float above = f(N, x);
        x[i] = start[i] - h;
        apart = fmaxf(apart, fabsf(ds[i] - (above - f(N, x)) / (2 * h)));
        most = fmaxf(most, fabsf(ds[i]));
    }
    return apart / most;
}

/* The derivative of f along v, by the complex step, as on the lesson's page. */
static double along(int64_t n, const double *x, const double *v)
{
    const double tiny = 1e-200;
    double _Complex a[N], sum = 0, y = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] = cexp(x[i] + tiny * v[i] * I);
    for (int64_t i = 0; i < n; i++)
        y += (double)weight[i] * a[i] / sum;
    return cimag(y) / tiny;
}

static double f_in_double(const double *x)
{
    double a[N], y = 0;
    true_softmax(N, x, a);
    for (int i = 0; i < N; i++)
        y += (double)weight[i] * a[i];
    return y;
}

/* The same error in double; without an h, that of the complex step. */
static double error_in_double(double h)
{
    double x[N], a[N], apart = 0, most = 0;
    for (int i = 0; i < N; i++)
        x[i] = (double)start[i];
    true_softmax(N, x, a);
    const double average = f_in_double(x);
    for (int i = 0; i < N; i++) {
        double above[N], below[N], unit[N] = {0};
        memcpy(above, x, sizeof x);
        memcpy(below, x, sizeof x);
        above[i] += h;
        below[i] -= h;
        unit[i] = 1;
        const double ds = a[i] * ((double)weight[i] - average);
        const double measured =
            h > 0 ? (f_in_double(above) - f_in_double(below)) / (2 * h) : along(N, x, unit);
        apart = fmax(apart, fabs(ds - measured));
        most = fmax(most, fabs(ds));
    }
    return apart / most;
}

static void test_step(void)
{
    static const float steps[] = {1, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-7f};
    say("The right gradient, and the error of the differences:");
    for (int i = 0; i < 8; i++)
        say("    h = %-8g in float %.1e   in double %.1e", (double)steps[i],
            (double)error_with(steps[i]), error_in_double((double)steps[i]));
    say("    complex step, without h          in double %.1e", error_in_double(0));
    const float h = check_step(), error = error_with(h);
    if (!holds(h > 0 && error < 1e-4f, "the error of your h = %g is %.1e; it must be below 1e-4",
               (double)h, (double)error))
        hint(h >= 0.03f ? "so large a step leaves the straight part of the curve; the error grows "
                          "with h^2"
                        : "f(x + h) and f(x - h) have the same leading digits, and what is left "
                          "of 7 after the subtraction is rounding: take a larger h");
}

static bool accepts(const float *gradient)
{
    static bool said;
    float x[N];
    memcpy(x, start, sizeof x);
    bool accepted = gradient_holds(f, N, x, gradient);
    if (memcmp(x, start, sizeof x) && !said)
        said = !holds(false, "x is restored to the bit: keep x[i], do not add and subtract h");
    return accepted;
}

static void test_right(float size, const char *what)
{
    float ds[N];
    size_of_f = size;
    true_gradient(ds);
    if (!holds(accepts(ds), "the right gradient of %s is accepted", what))
        hint(size == 1 ? "is it a one-sided difference, (f(x + h) - f(x)) / h? Its error grows "
                         "with h and not with h^2. Or is the tolerance below what h can reach?"
                       : "an error of 1 is much in a gradient of 1 and nothing in one of 10,000: "
                         "divide the error by the largest gradient");
    size_of_f = 1;
}

static void test_wrong(void)
{
    float a[N], right[N], ds[N];
    softmax(N, start, a);
    true_gradient(right);
    for (int i = 0; i < N; i++)
        ds[i] = a[i] * (1 - a[i]) * weight[i];
    if (!holds(!accepts(ds), "planted bug 1 is caught: the diagonal of J alone"))
        hint("this one is wrong everywhere; is any number compared?");
    memcpy(ds, right, sizeof ds);
    ds[N - 1] *= 1.02f;
    if (!holds(!accepts(ds), "planted bug 2 is caught: the last element is 2 %% too large"))
        hint("are all n elements compared, and is the tolerance well below 2 %%?");
    memcpy(ds, right, sizeof ds);
    ds[2] = NAN;
    if (!holds(!accepts(ds), "planted bug 3 is caught: one element is NaN"))
        hint("`<` and `>` are false beside a NaN, so that `if (error > tolerance) return false` "
             "accepts it; fmaxf passes over it, too. Test isnan");
    size_of_f = 1e-5f;
    true_gradient(ds);
    for (int i = 0; i < N; i++)
        ds[i] *= 2;
    if (!holds(!accepts(ds), "planted bug 4 is caught: twice the gradient, which is below 1e-5"))
        hint("a fixed tolerance accepts anything where all numbers are small: divide the error by "
             "the largest gradient");
    size_of_f = 1;
}

int main(void)
{
    test_step();
    blank_line();
    test_right(1, "f");
    test_right(1e4f, "10,000 f");
    test_wrong();
    return lesson_end();
}
