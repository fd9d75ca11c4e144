/* Whether masked_softmax and masked_backward decide by the mask alone. */
#include "lesson.h"
#include <math.h>

enum { N = 4 };

static void show(const char *name, const double *x)
{
    say("%s %8.4f %8.4f %8.4f %8.4f", name, shown(x[0]), shown(x[1]), shown(x[2]), shown(x[3]));
}

static void test_forward(void)
{
    const double s[N] = {2, 1, 0, -1};
    const double third = 1. / 3;
    const bool keep[N] = {false, true, true, true};
    double a[N] = {0};
    masked_softmax(N, s, keep, a);
    show("scores 2 1 0 -1 without the first:     ", a);
    if (!holds(fabs(a[1] - 0.66524096) < 1e-8 && fabs(a[2] - 0.24472847) < 1e-8 && a[0] == 0,
               "the kept entries are a softmax: 0, 0.6652, 0.2447, 0.0900")) {
        if (fabs(a[1] - 0.23688282) < 1e-6)
            hint("these are the weights of the whole row without the blocked one: they must be "
                 "divided by the sum over the kept ones");
        else if (a[0] != 0)
            hint("the blocked weight is not 0");
    }
    const double large[N] = {1e4, 0, 0, 0};
    masked_softmax(N, large, keep, a);
    show("scores 10000 0 0 0 without the first:  ", a);
    if (!holds(fabs(a[1] - third) < 1e-12 && a[0] == 0,
               "a large blocked score changes nothing: 0, 0.3333, 0.3333, 0.3333"))
        hint("the largest score that you subtract must be the largest of the kept ones: with "
             "another, all kept exponentials are 0");
    const double low[N] = {0, -2e9, -2e9, -2e9};
    masked_softmax(N, low, keep, a);
    show("scores 0 -2e9 -2e9 -2e9, the same:     ", a);
    if (!holds(fabs(a[1] - third) < 1e-12 && a[0] == 0,
               "very low kept scores still count: 0, 0.3333, 0.3333, 0.3333"))
        hint("-1e9 is a score like any other, and here the largest. Blocked is not a number: test "
             "keep");
}

static void test_empty_and_nan(void)
{
    const double s[N] = {2, 1, 0, -1}, infinite[N] = {-INFINITY, NAN, INFINITY, 3};
    const bool none[N] = {false}, last[N] = {false, false, false, true};
    const bool all[N] = {true, true, true, true};
    double a[N] = {9, 9, 9, 9};
    masked_softmax(N, s, none, a);
    show("scores 2 1 0 -1, all blocked:          ", a);
    if (!holds(a[0] == 0 && a[1] == 0 && a[2] == 0 && a[3] == 0, "an empty row is all 0")) {
        if (fabs(a[0] - 0.25) < 1e-9)
            hint("with -1e9 in every place the row is even, and attends to everything that it must "
                 "not "
                 "see: -1e9 is not -infinity");
        else if (isnan(a[0]))
            hint("the sum is 0, or the largest is -infinity: 0 / 0 and inf - inf are NaN, and one "
                 "NaN here reaches every weight that the model shares");
    }
    masked_softmax(N, infinite, last, a);
    show("scores -inf NaN inf 3, only the last:  ", a);
    if (!holds(a[0] == 0 && a[1] == 0 && a[2] == 0 && a[3] == 1, "blocked entries do not leak"))
        hint("0 times NaN, or 0 times infinity, is NaN: choose by keep ? : and do not multiply");
    const double sick[N] = {2, NAN, 0, -1};
    masked_softmax(N, sick, all, a);
    show("scores 2 NaN 0 -1, all kept:           ", a);
    if (!holds(isnan(a[1]), "a NaN in a kept entry stays visible"))
        hint("turning every NaN into 0 repairs empty rows, and hides that the model is broken. "
             "Decide by the mask and never by the values");
}

static void test_backward(void)
{
    const double a[N] = {0, 0.5, 0.5, 0}, g[N] = {NAN, 1, 3, INFINITY}, g2[N] = {7, 1, 3, -5};
    const bool keep[N] = {false, true, true, false}, none[N] = {false};
    const double right[N] = {0, -0.5, 0.5, 0}, zero[N] = {0};
    double ds[N] = {9, 9, 9, 9};
    masked_backward(N, keep, a, g2, ds);
    show("a 0 .5 .5 0, g 7 1 3 -5:            ds ", ds);
    holds(distance(N, ds, right) < 1e-12, "ds is lesson 3's: 0 -0.5 0.5 0");
    masked_backward(N, keep, a, g, ds);
    show("a 0 .5 .5 0, g NaN 1 3 inf:         ds ", ds);
    if (!holds(distance(N, ds, right) < 1e-12, "a NaN in g at a blocked entry does not leak"))
        hint("a_i is 0 there, but 0 times NaN is NaN: pass over the blocked ones in both loops");
    masked_backward(N, none, zero, g, ds);
    show("a 0 0 0 0, all blocked:             ds ", ds);
    holds(distance(N, ds, zero) == 0, "an empty row passes no gradient");
}

int main(void)
{
    test_forward();
    blank_line();
    test_empty_and_nan();
    blank_line();
    test_backward();
    return lesson_end();
}
