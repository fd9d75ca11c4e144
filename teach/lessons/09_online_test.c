/* Whether online_add and online_backward give the results of a softmax that stores its row. */
#include "lesson.h"
#include <math.h>

enum { N = 1000, MANY = 1000000, BLOCK = 250 };
static double s[N], v[N], a[N];
static const double dy = 0.7;

static void draw(void)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int j = 0; j < N; j++) {
        s[j] = 3 * sb_random_normal(&random) + 30. * j / N;
        v[j] = sb_random_normal(&random);
    }
    true_softmax(N, s, a);
}

static const struct online start = {-INFINITY, 0, 0};

static struct online in_blocks(int64_t block)
{
    struct online state = start;
    for (int64_t j = 0; j < N; j += block)
        online_add(&state, block < N - j ? block : N - j, s + j, v + j);
    return state;
}

/* The state after blocks whose rescaling has these factors as exponents: 1 and 1 are right. */
static struct online rescaled(int64_t block, int l_power, int o_power)
{
    struct online state = start;
    for (int64_t j = 0; j < N; j += block) {
        double m = state.m;
        for (int64_t k = j; k < j + block && k < N; k++)
            m = fmax(m, s[k]);
        const double less = j ? m - state.m : 0;
        state.m = m;
        state.l *= exp(-l_power * less);
        state.o *= exp(-o_power * less);
        for (int64_t k = j; k < j + block && k < N; k++) {
            state.l += exp(s[k] - m);
            state.o += exp(s[k] - m) * v[k];
        }
    }
    return state;
}

static bool alike(double x, double y)
{
    return fabs(x - y) <= 1e-9 * fmax(fabs(x), fabs(y));
}

static void name_state(int64_t block, const struct online *yours)
{
    static const struct {
        int l_power, o_power;
        const char *name;
    } wrong[] = {
        {0, 0,
         "what came before is never scaled down: the first blocks were summed with a smaller "
         "m, so their exponentials are too large by exp(new m - old m)"},
        {1, 0, "l is scaled when m grows, but o is not"},
        {0, 1, "o is scaled when m grows, but l is not"},
        {-1, -1, "scaled the wrong way round: the factor is exp(old m - new m), at most 1"},
    };
    for (int k = 0; k < 4; k++) {
        struct online state = rescaled(block, wrong[k].l_power, wrong[k].o_power);
        if (alike(state.l, yours->l) && alike(state.o, yours->o)) {
            hint("%s", wrong[k].name);
            return;
        }
    }
    if (!alike(yours->m, in_blocks(N).m))
        hint("m is not the largest score of all blocks");
}

static bool test_forward(void)
{
    static const int64_t blocks[] = {N, 500, 64, 7, 1};
    double right = 0;
    bool ok = true;
    for (int j = 0; j < N; j++)
        right += a[j] * v[j];
    for (int b = 0; b < 5; b++) {
        struct online end = in_blocks(blocks[b]);
        if (!holds(fabs(end.o / end.l - right) < 1e-12,
                   "%d keys in blocks of %d: y is %.6f, yours %.6f", N, (int)blocks[b], right,
                   shown(end.o / end.l))) {
            if (ok)
                name_state(blocks[b], &end);
            ok = false;
        }
    }
    const double low[] = {0, 0}, high[] = {1000, 1000}, values[] = {1, 2, 3, 4};
    struct online state = start;
    online_add(&state, 2, low, values);
    online_add(&state, 2, high, values + 2);
    if (!holds(fabs(state.o / state.l - 3.5) < 1e-12 && state.m == 1000,
               "scores 0 0, then 1000 1000: y is 3.5, yours %g; m is 1000, yours %g",
               shown(state.o / state.l), state.m)) {
        if (state.m == 0)
            hint("exp(1000 - 0) is infinite: m must grow with the scores, and what was "
                 "summed with the old one must be scaled to the new one");
        ok = false;
    }
    const double blocked[] = {-INFINITY, -INFINITY};
    state = start;
    online_add(&state, 2, blocked, v);
    online_add(&state, N, s, v);
    online_add(&state, 2, blocked, v);
    if (!holds(fabs(state.o / state.l - right) < 1e-12,
               "blocks with only blocked keys, before and after, change nothing"))
        hint("-inf - -inf is NaN: as long as the new m is -infinity there is nothing to add");
    return ok;
}

static void name_backward(const struct online *end, const double *ds, const double *dv)
{
    const double y = end->o / end->l;
    if (fabs(dv[N - 1] - dy * a[N - 1] * end->l) < 1e-12)
        hint("a is exp(s - m) / l: l is missing");
    else if (!(fabs(dv[N - 1] - dy * a[N - 1]) <= 1e-12))
        hint("dv_j = a_j dy with a_j = exp(s_j - m) / l, of the m and l at the end");
    else if (fabs(ds[N - 1] - a[N - 1] * dy * v[N - 1]) < 1e-12)
        hint("g is dy v_j, and the average of all g must be subtracted");
    else if (fabs(ds[N - 1] - a[N - 1] * (dy * v[N - 1] - dy * end->o)) < 1e-9)
        hint("the state's o is still to be divided by l");
    else if (fabs(ds[N - 1] - a[N - 1] * (dy * v[N - 1] - y)) < 1e-12)
        hint("the average of the g is dy y, not y");
    else
        hint(
            "is your average that of this block's keys only? sum_j a_j g_j goes over all keys; but "
            "it is sum_j a_j v_j dy, and so y dy with y = o / l, which the state knows");
}

static void test_backward(void)
{
    double right[N], right_dv[N], ds[N], dv[N], average = 0;
    const struct online end = rescaled(N, 1, 1);
    for (int j = 0; j < N; j++)
        average += a[j] * dy * v[j];
    for (int j = 0; j < N; j++) {
        right[j] = a[j] * (dy * v[j] - average);
        right_dv[j] = a[j] * dy;
    }
    for (int64_t j = 0; j < N; j += 64)
        online_backward(&end, dy, j + 64 < N ? 64 : N - j, s + j, v + j, ds + j, dv + j);
    const double furthest = distance(N, dv, right_dv), apart = distance(N, ds, right);
    bool ok = holds(furthest < 1e-12, "backward in blocks of 64: dv, furthest apart %.1e",
                    shown(furthest));
    ok = holds(apart < 1e-12, "backward in blocks of 64: ds, furthest apart %.1e", shown(apart)) &&
         ok;
    if (!ok)
        name_backward(&end, ds, dv);
}

/* A row that is never stored: its scores are computed block by block in the same 256 places. */
static void test_memory(void)
{
    struct online state = start;
    double scores[BLOCK], values[BLOCK];
    for (int64_t j = 0; j < MANY; j += BLOCK) {
        for (int k = 0; k < BLOCK; k++) {
            scores[k] = (double)((j + k) % 1021) / 100;
            values[k] = 1;
        }
        online_add(&state, BLOCK, scores, values);
    }
    say("%d keys in blocks of %d: the row would be %.1f MB; the block is %.1f kB, the state %d "
        "bytes",
        MANY, BLOCK, 8e-6 * MANY, 8e-3 * BLOCK, (int)sizeof state);
    holds(fabs(state.o / state.l - 1) < 1e-9, "and the mean of values that are all 1 is 1");
}

int main(void)
{
    draw();
    bool forward = test_forward();
    blank_line();
    test_backward();
    blank_line();
    if (forward)
        test_memory();
    return lesson_end();
}
