/* Whether cross_entropy and its gradient are right, also of logits far apart. */
#include "lesson.h"
#include <math.h>
#include <string.h>

enum { N = 3 };
static const struct {
    float z[N];
    int64_t target;
    const char *name;
} rows[] = {
    {{0, 0.69314718f, 1.60943791f}, 1, "0, ln 2, ln 5"},
    {{0, 60, 120}, 2, "0, 60, 120"},
    {{0, 60, 120}, 0, "0, 60, 120"},
    {{1000, 1000, 1000}, 1, "1000, 1000, 1000"},
    {{0, 600, 1200}, 0, "0, 600, 1200"},
};

/* In double, without overflow: the loss, and its gradient. */
static double reference(const float *z, int64_t target, double *p)
{
    double wide[N];
    for (int i = 0; i < N; i++)
        wide[i] = (double)z[i];
    true_softmax(N, wide, p);
    double max = fmax(wide[0], fmax(wide[1], wide[2])), sum = 0;
    for (int i = 0; i < N; i++)
        sum += exp(wide[i] - max);
    return max + log(sum) - wide[target];
}

static void name_loss(float loss, double right)
{
    if (!isfinite(loss) && right < 80)
        hint("the right loss is small, so an exp overflowed: in a float that is every z above 88. "
             "Is the largest z subtracted before exp?");
    else if (loss < 0)
        hint("a loss is -ln p: the sign is reversed");
    else if (isinf(loss))
        hint("p[target] is too small for a float, which has 0 for it, and -ln 0 is infinite. Take "
             "the logarithm on paper first: -ln p_t = ln sum_j exp(z_j - max) + (max - z_t)");
    else
        hint("it must be ln sum_j exp(z_j - max) + (max - z_t)");
}

static void name_gradient(int64_t target, const double *p, const double *dz)
{
    enum { COUNT = 4 };
    struct guess guess[N][COUNT];
    for (int i = 0; i < N; i++) {
        const double y = i == target;
        const struct guess known[COUNT] = {
            {p[i], "this is p; the 1 of the target is still to be subtracted"},
            {y - p[i], "this is y - p: the sign is reversed, and the loss would grow"},
            {p[i] * (1 - p[i]), "this is p (1 - p): lesson 2's diagonal again"},
            {i == target ? p[i] - 1 : 0,
             "only the target's logit has a gradient here, but all z are in the sum"},
        };
        memcpy(guess[i], known, sizeof known);
    }
    if (hint_guess(N, dz, COUNT, guess[0]))
        return;
    if (!finite_all(N, dz) && p[target] > 1e-30)
        hint("an exp overflowed; subtract the largest z first");
    else if (!finite_all(N, dz))
        hint("dp = -1 / p[target] is infinite where p is 0, and 0 times infinity is NaN: on "
             "paper, p cancels. What is left of it?");
}

/* The first whole gap of two logits at which 1 / p is infinite. */
static int overflow_gap(void)
{
    int gap = 0;
    while (isfinite(1 / exp(-gap)))
        gap++;
    return gap;
}

int main(void)
{
    for (int r = 0; r < (int)(sizeof rows / sizeof rows[0]); r++) {
        float yours[N] = {0};
        double dz[N], p[N], right[N];
        const int64_t target = rows[r].target;
        const double loss = reference(rows[r].z, target, p);
        float got = cross_entropy(N, rows[r].z, target, yours);
        for (int i = 0; i < N; i++) {
            dz[i] = (double)yours[i];
            right[i] = p[i] - (i == target);
        }
        say("logits %s, target %d", rows[r].name, (int)target);
        if (!holds(fabs((double)got - loss) <= 2e-4, "the loss is %.4f: yours is %.4f", loss,
                   shown((double)got)))
            name_loss(got, loss);
        if (!holds(distance(N, dz, right) < 1e-5,
                   "its gradient is %.4f %.4f %.4f: yours is %.4f %.4f %.4f", right[0], right[1],
                   right[2], shown(dz[0]), shown(dz[1]), shown(dz[2])))
            name_gradient(target, p, dz);
    }
    blank_line();
    say("Two steps in double: 1 / p overflows when logits are %d apart.", overflow_gap());
    return lesson_end();
}
