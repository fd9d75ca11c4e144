/* Whether softmax_row is a softmax, also of large numbers. */
#include "lesson.h"
#include <math.h>
#include <stdio.h>

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

enum { ROOM = 12 }; /* for one number and what separates it */

/* At most MOST numbers as text, in `text`; wrong ones may be large. */
static const char *row_text(int64_t n, const double *y, char text[ROOM * MOST])
{
    char *end = text;
    for (int64_t i = 0; i < n; i++)
        end +=
            snprintf(end, ROOM, fabs(y[i]) < 1000 ? "%s%.4f" : "%s%.3g", i ? " " : "", shown(y[i]));
    return text;
}

/* Whether y is softmax, of which `right` is the truth, with each y_i divided by the sum so far. */
static bool divides_too_early(int64_t n, const double *right, const double *y)
{
    double sum = 0, early[MOST];
    for (int64_t i = 0; i < n; i++)
        early[i] = right[i] / (sum += right[i]);
    return distance(n, y, early) < 1e-9;
}

/* Names the mistake in the first row that is wrong. */
static void name_mistake(int64_t n, const double *x, const double *y, const double *right)
{
    double plain[MOST], sum = total(n, y), max = x[0], off = y[0] / right[0];
    for (int64_t i = 0; i < n; i++) {
        plain[i] = exp(x[i]);
        max = fmax(max, x[i]);
        off = fabs(y[i] / right[i] - off) < 1e-9 ? off : NAN; /* the same factor everywhere */
    }
    if (sum == 0)
        hint("all y are 0");
    else if (distance(n, y, plain) < 1e-9)
        hint("these are the exponentials; divide each by the sum of all of them");
    else if (divides_too_early(n, right, y))
        hint("each y is divided by the sum so far: divide in a loop of its own, after the one that "
             "adds");
    else if (fabs(off - exp(max)) < 1e-9 || fabs(off - exp(-max)) < 1e-9)
        hint(
            "every y is %.4g times too large: is the largest x subtracted in one of the two places "
            "only, above or below the fraction bar?",
            off);
    else if (!isfinite(sum) && max > 700)
        hint("exp(%g) is infinite in a double, and inf / inf is NaN. Subtracting one number from "
             "every x does not change the result: take the largest",
             max);
    else if (!isfinite(sum) && x[0] < -700)
        hint("all exponentials are 0, and 0 / 0 is NaN. Subtract the largest x first; and if you "
             "do, does your search for it start with 0? Start with x[0]");
    else if (!isfinite(sum))
        hint("the result is not finite: which exponential overflowed, or was the sum 0?");
    else if (fabs(sum - 1) > 1e-9)
        hint("the sum is %.6g and not 1: does the sum below go over all n exponentials, and are "
             "they the ones above?",
             sum);
}

int main(void)
{
    bool named = false;
    for (int r = 0; r < ROWS; r++) {
        double y[MOST + 1] = {0}, right[MOST];
        char wanted[ROOM * MOST], got[ROOM * MOST];
        const int64_t n = rows[r].n;
        y[n] = 12345;
        softmax_row(n, rows[r].x, y);
        true_softmax(n, rows[r].x, right);
        if (!holds(distance(n, y, right) < 1e-12, "softmax(%s) is %s: yours %s", rows[r].name,
                   row_text(n, right, wanted), row_text(n, y, got)) &&
            !named) {
            name_mistake(n, rows[r].x, y, right);
            named = true;
        }
        if (y[n] != 12345)
            holds(false, "nothing is written past the end of the row");
    }
    return lesson_end();
}
