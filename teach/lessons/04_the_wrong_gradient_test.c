/* What score_gradient does to three models that learn to reverse eight symbols. */
#include "lesson.h"
#include "reverse.h"
#include <math.h>
#include <string.h>

enum { N = 4, SEEDS = 3, STEPS = 800 };
static const double a[N] = {0.6380664, 0.2347315, 0.0954347, 0.0317675}, g[N] = {0.5, -1, 2, 0.25};

/* Whether ds is what the hole asks for, or else what it is. */
static void name_gradient(const double *ds)
{
    enum { COUNT = 6 };
    struct guess guess[N][COUNT];
    double asked[N], average = 0, mean = 0, wrong = 0;
    for (int i = 0; i < N; i++) {
        average += a[i] * g[i];
        mean += g[i] / N;
        wrong += a[i] * (1 - a[i]) * g[i];
    }
    for (int i = 0; i < N; i++) {
        const double mistake = a[i] * (1 - a[i]) * g[i];
        const struct guess known[COUNT] = {
            {mistake, "this is the mistake as it was: a (1 - a) g, whose sum is not 0"},
            {0,
             "this is 0, which the page asks you to look at: queries and keys keep their initial "
             "values, and only values learn"},
            {a[i] * g[i], "this is a g, an even larger mistake"},
            {a[i] * (1 - a[i]) * (g[i] - mean), "you subtracted the mean of g, before the factor a "
                                                "(1 - a): subtract that of ds, after "
                                                "it"},
            {a[i] * (g[i] - average),
             "this is the true gradient, a (g - sum_j a_j g_j), which the page asks you to look "
             "at. "
             "It sums to 0 as well; the hole asks for the mistake less its mean"},
            {mistake - a[i] * wrong,
             "you subtracted a_i times the sum of ds. This sums to 0 as well, but it is not the "
             "mean: subtract sum / n, the same number from each ds_i"},
        };
        memcpy(guess[i], known, sizeof known);
        asked[i] = mistake - wrong / N;
    }
    const double sum = total(N, ds);
    if (!holds(distance(N, ds, asked) < 1e-5, "ds is a (1 - a) g less its mean: the sum is %.4f",
               fabs(sum) < 1e-6 ? 0 : shown(sum)) &&
        !hint_guess(N, ds, COUNT, guess[0]))
        hint("the mean is the sum divided by n");
}

int main(void)
{
    float single_a[N], single_g[N], single[N] = {0};
    double ds[N];
    for (int i = 0; i < N; i++) {
        single_a[i] = (float)a[i];
        single_g[i] = (float)g[i];
    }
    score_gradient(N, single_a, single_g, single);
    for (int i = 0; i < N; i++)
        ds[i] = shown((double)single[i]);
    say("a       %8.4f %8.4f %8.4f %8.4f", a[0], a[1], a[2], a[3]);
    say("g       %8.4f %8.4f %8.4f %8.4f", g[0], g[1], g[2], g[3]);
    say("your ds %8.4f %8.4f %8.4f %8.4f", ds[0], ds[1], ds[2], ds[3]);
    name_gradient(ds);
    blank_line();
    say("Three models, %d steps each; guessing has a loss of ln 16 = 2.77 and 6.2 %% right.",
        STEPS);
    say("seed   loss after 100   after %d    right   mean of a row's scores", STEPS);
    int learnt = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct reverse_result result;
        if (!reverse_train(score_gradient, (uint64_t)seed, STEPS, &result))
            say("training failed: %s", sb_error());
        else
            say("%4d %16.3f %11.3f %7.1f %% %16.1f", seed, result.early, result.last,
                100 * result.accuracy, result.shift);
        learnt += result.accuracy >= 0.9;
    }
    if (!holds(learnt == SEEDS, "%d of %d models reverse 90 %% or more of the symbols", learnt,
               SEEDS) &&
        learnt)
        hint("some learn it nevertheless: that a model learns says little about its gradient");
    return lesson_end();
}
