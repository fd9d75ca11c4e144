/* What score_gradient does to three models that learn to reverse eight symbols. */
#include "lesson.h"
#include "reverse.h"
#include <math.h>

enum { N = 4, SEEDS = 3, STEPS = 800, ASKED = 6 };
static const float a[N] = {0.6439142f, 0.2368828f, 0.0871443f, 0.0320586f};
static const float g[N] = {0.5f, -1, 2, 0.25f};

static float formula_at(int formula, int i)
{
    const float average = a[0] * g[0] + a[1] * g[1] + a[2] * g[2] + a[3] * g[3];
    const float mean = (g[0] + g[1] + g[2] + g[3]) / N;
    float mistake[N], sum = 0;
    for (int j = 0; j < N; j++)
        sum += mistake[j] = a[j] * (1 - a[j]) * g[j];
    switch (formula) {
    case 0:
        return mistake[i];
    case 1:
        return 0;
    case 2:
        return a[i] * g[i];
    case 3:
        return a[i] * (1 - a[i]) * (g[i] - mean);
    case 4:
        return a[i] * (g[i] - average);
    case 5:
        return mistake[i] - a[i] * sum;
    default: /* ASKED */
        return mistake[i] - sum / N;
    }
}

static bool is_formula(int formula, const float *ds)
{
    bool alike = true;
    for (int i = 0; i < N; i++)
        alike = alike && fabsf(ds[i] - formula_at(formula, i)) < 1e-6f;
    return alike;
}

static void name_formula(const float *ds)
{
    static const char *const names[] = {
        "this is the mistake as it was: a (1 - a) g, whose sum is not 0",
        "this is 0: queries and keys keep their initial values, and only values learn",
        "this is a g, an even larger mistake",
        "you subtracted the mean of g, before the factor a (1 - a): subtract that of ds, after it",
        "this is the true gradient, a (g - sum_j a_j g_j), which sums to 0 as well. See what it "
        "does below; the hole asks for the mistake less its mean",
        "you subtracted a_i times the sum of ds. This sums to 0 as well, but it is not the mean: "
        "subtract sum / n, the same number from each ds_i",
    };
    for (int formula = 0; formula < ASKED; formula++)
        if (is_formula(formula, ds)) {
            hint("%s", names[formula]);
            return;
        }
    hint("the mean is the sum divided by n");
}

int main(void)
{
    float ds[N] = {0};
    score_gradient(N, a, g, ds);
    say("a       %8.4f %8.4f %8.4f %8.4f", a[0], a[1], a[2], a[3]);
    say("g       %8.4f %8.4f %8.4f %8.4f", g[0], g[1], g[2], g[3]);
    say("your ds %8.4f %8.4f %8.4f %8.4f", shown((double)ds[0]), shown((double)ds[1]),
        shown((double)ds[2]), shown((double)ds[3]));
    const float sum = ds[0] + ds[1] + ds[2] + ds[3];
    if (!holds(is_formula(ASKED, ds), "ds is a (1 - a) g less its mean: the sum is %.4f",
               fabsf(sum) < 1e-6f ? 0 : shown((double)sum)))
        name_formula(ds);
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
