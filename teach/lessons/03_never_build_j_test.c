/* Whether softmax_backward is the product with J, and stays so for a row of 65,536. */
#include "lesson.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { N = 4, LONG = 65536, OLD = 7 }; /* OLD: what ds holds before */

/* The product with J, as the page defines it. */
static void by_jacobian(int64_t n, const double *a, const double *g, double *ds)
{
    for (int64_t j = 0; j < n; j++) {
        ds[j] = 0;
        for (int64_t i = 0; i < n; i++)
            ds[j] += g[i] * a[i] * ((i == j) - a[j]);
    }
}

static void name_mistake(const double *a, const double *g, const double *ds)
{
    enum { COUNT = 11 };
    static const char *const so_far_name =
        "you subtract the average of the row so far: it needs a loop of its own, before that of ds";
    struct guess guess[N][COUNT];
    double average = 0, so_far = 0;
    const double plain = total(N, g);
    for (int i = 0; i < N; i++)
        average += a[i] * g[i];
    for (int i = 0; i < N; so_far += a[i] * g[i], i++) {
        const struct guess known[COUNT] = {
            {a[i] * (1 - a[i]) * g[i], "this is a (1 - a) g, the diagonal of J alone: the other "
                                       "scores' payments are missing"},
            {a[i] * g[i], "this is a g: the average, which every score must subtract, is missing"},
            {a[i] * (g[i] - plain / N),
             "you subtract the plain mean of g; the average is weighted by a, sum_j a_j g_j"},
            {a[i] * (g[i] - plain),
             "you subtract the plain sum of g; the average is weighted by a, sum_j a_j g_j"},
            {g[i] - average, "the factor a_i in front is missing"},
            {a[i] * (average - g[i]), "the sign is reversed"},
            {a[i] * (g[i] - average / N),
             "the average is sum_j a_j g_j; the a sum to 1, so there is nothing to divide by n"},
            {a[i] * g[i] - average,
             "brackets are missing: a_i multiplies the whole difference, a_i (g_i - average)"},
            {a[i] * (g[i] - so_far), so_far_name},
            {a[i] * (g[i] - so_far - a[i] * g[i]), so_far_name},
            {OLD + a[i] * (g[i] - average),
             "ds is assigned here, not added to: it held old numbers"},
        };
        memcpy(guess[i], known, sizeof known);
    }
    hint_guess(N, ds, COUNT, guess[0]);
}

/* Processor seconds of a number of rows of length n, the least of three tries. */
static double seconds(int64_t rows, int64_t n, const double *a, const double *g, double *ds)
{
    double least = INFINITY;
    for (int again = 0; again < 3 && least > 0.1; again++) {
        clock_t start = clock();
        for (int64_t r = 0; r < rows; r++)
            softmax_backward(n, a + r * n, g + r * n, ds + r * n);
        least = fmin(least, (double)(clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
}

/* Allows 2 GB more than there is: J of LONG would be 34 GB as doubles. */
static void limit_memory(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    bool known = file && fscanf(file, "%ld", &pages) == 1;
    if (file)
        fclose(file);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)2 << 30);
    const struct rlimit limit = {most, most};
    if (!known || setrlimit(RLIMIT_AS, &limit))
        say("(the memory could not be limited here)");
}

static void test_short(void)
{
    const double scores[N] = {2, 1, 0.1, -1}, g[N] = {0.5, -1, 2, 0.25};
    double a[N], ds[N] = {OLD, OLD, OLD, OLD}, right[N];
    true_softmax(N, scores, a);
    by_jacobian(N, a, g, right);
    softmax_backward(N, a, g, ds);
    say("a          %8.4f %8.4f %8.4f %8.4f", a[0], a[1], a[2], a[3]);
    say("g          %8.4f %8.4f %8.4f %8.4f", g[0], g[1], g[2], g[3]);
    say("your ds    %8.4f %8.4f %8.4f %8.4f", shown(ds[0]), shown(ds[1]), shown(ds[2]),
        shown(ds[3]));
    say("with J     %8.4f %8.4f %8.4f %8.4f", right[0], right[1], right[2], right[3]);
    if (!holds(distance(N, ds, right) < 1e-12, "ds is the product with J"))
        name_mistake(a, g, ds);
    holds(ds[0] != 0 && fabs(total(N, ds)) < 1e-12, "ds sums to 0, and is not all 0");
}

/* Whether a row 64 times as long takes 64 times as long, and not 64^2 times; n = 16,384, so that
   even n^2 is soon done. */
static bool test_time(const double *a, const double *g, double *ds)
{
    const int64_t n = LONG / 4;
    double whole = seconds(1, n, a, g, ds), cut = seconds(64, n / 64, a, g, ds);
    say("64 rows of 256 take %.3f ms, one row of 16,384 takes %.3f ms", 1e3 * cut, 1e3 * whole);
    bool ok = whole < 0.02 || whole < 16 * cut;
    if (!holds(ok, "the time of a row does not grow with n^2"))
        hint("your time grows with n^2: there is a loop over j inside one over i. The sum over j "
             "is the same for every i");
    return ok;
}

static void test_long(void)
{
    double *a = malloc(sizeof(double[3][LONG])), *g = a + LONG, *ds = g + LONG;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    if (!a)
        return;
    double average = 0;
    for (int i = 0; i < LONG; i++) {
        a[i] = (i + 0.5) * 2 / LONG / LONG; /* sums to 1 */
        g[i] = sb_random_normal(&random);
        ds[i] = OLD;
        average += a[i] * g[i];
    }
    blank_line();
    say("A row of 65,536. J would be %.1f GB as floats, and 2 GB are allowed: a crash or a",
        4e-9 * LONG * LONG);
    say("failure from here on means that you asked for more.");
    limit_memory();
    if (!test_time(a, g, ds)) {
        free(a);
        return;
    }
    softmax_backward(LONG, a, g, ds);
    bool right = true;
    for (int i = 0; i < LONG; i++)
        right = right && LONG * fabs(ds[i] - a[i] * (g[i] - average)) < 1e-9;
    holds(right, "ds is right at n = 65,536");
    free(a);
}

int main(void)
{
    test_short();
    test_long();
    return lesson_end();
}
