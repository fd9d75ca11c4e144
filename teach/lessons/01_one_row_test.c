/* Whether softmax_row is a softmax, also of large numbers. */
#include "lesson.h"
#include <math.h>

enum { MOST = 5 };

static const struct {
    const char *name;
    int64_t n;
    double x[MOST];
} rows[] = {
    {"0, ln 2, ln 5", 3, {0, 0.69314718055994531, 1.6094379124341003}},
    {"20, 22, 18, 21", 4, {20, 22, 18, 21}},
    {"7", 1, {7}},
    {"1000, 1000", 2, {1000, 1000}},
    {"-1000, -1001", 2, {-1000, -1001}},
    {"0, 1000", 2, {0, 1000}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* What the numbers y look like, when they are not softmax(x). */
static void name_mistake(int64_t n, const double *x, const double *y)
{
    double plain[MOST], sum = total(n, y);
    for (int64_t i = 0; i < n; i++)
        plain[i] = exp(x[i]);
    if (sum == 0)
        hint("all of it is 0");
    else if (distance(n, y, plain) < 1e-9)
        hint("these are the exponentials; divide each by the sum of all of them");
    else if (!isfinite(sum) && x[n - 1] > 700)
        hint("exp(%g) is infinite in a double, and inf / inf is NaN. One number may be taken from "
             "every x without changing the result: take the largest",
             x[n - 1]);
    else if (!isfinite(sum) && x[0] < -700)
        hint("all exponentials are 0, and 0 / 0 is NaN. Is 0 the start of your search for the "
             "largest x? Start with x[0]");
    else if (!isfinite(sum))
        hint("the result is not finite: which exponential overflowed, or was the sum 0?");
    else if (fabs(sum - 1) > 1e-9)
        hint("the sum is %.6g and not 1: does the sum below go over all n exponentials, and are "
             "they the ones above?",
             sum);
}

int main(void)
{
    for (int r = 0; r < ROWS; r++) {
        double y[MOST + 1] = {0}, right[MOST];
        const int64_t n = rows[r].n;
        y[n] = 12345;
        softmax_row(n, rows[r].x, y);
        true_softmax(n, rows[r].x, right);
        if (!holds(distance(n, y, right) < 1e-12, "softmax(%s) starts with %.4f: yours with %.4f",
                   rows[r].name, right[0], shown(y[0])))
            name_mistake(n, rows[r].x, y);
        if (y[n] != 12345)
            holds(false, "nothing is written behind the row");
    }
    return lesson_end();
}
