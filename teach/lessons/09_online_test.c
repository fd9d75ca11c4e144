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

/* The state after a wrong rescaling: factors (exponents) of the sum and of y. */
static struct online wrong_state(int64_t block, int sum_power, int y_power)
{
    struct online state = start;
    for (int64_t j = 0; j < N; j += block) {
        double max = state.max;
        for (int64_t k = j; k < j + block && k < N; k++)
            max = fmax(max, s[k]);
        const double less = j ? max - state.max : 0;
        state.max = max;
        state.sum *= exp(-sum_power * less);
        state.y *= exp(-y_power * less);
        for (int64_t k = j; k < j + block && k < N; k++) {
            state.sum += exp(s[k] - max);
            state.y += exp(s[k] - max) * v[k];
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
        int sum_power, y_power;
        const char *name;
    } wrong[] = {
        {0, 0,
         "what came before is never scaled down: the first blocks were summed with a smaller "
         "max, so their exponentials are too large by exp(max' - max)"},
        {1, 0, "the sum is scaled when the max grows, but y is not"},
        {0, 1, "y is scaled when the max grows, but the sum is not"},
        {-1, -1, "scaled the wrong way round: the factor is exp(old max - new max), at most 1"},
    };
    for (int k = 0; k < 4; k++) {
        struct online state = wrong_state(block, wrong[k].sum_power, wrong[k].y_power);
        if (alike(state.sum, yours->sum) && alike(state.y, yours->y)) {
            hint("%s", wrong[k].name);
            return;
        }
    }
    if (!alike(yours->max, in_blocks(N).max))
        hint("max is not the largest score of all blocks");
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
        if (!holds(fabs(end.y / end.sum - right) < 1e-12,
                   "%d keys in blocks of %d: y is %.6f, yours %.6f", N, (int)blocks[b], right,
                   shown(end.y / end.sum))) {
            if (ok)
                name_state(blocks[b], &end);
            ok = false;
        }
    }
    const double low[] = {0, 0}, high[] = {1000, 1000}, values[] = {1, 2, 3, 4};
    struct online state = start;
    online_add(&state, 2, low, values);
    online_add(&state, 2, high, values + 2);
    if (!holds(fabs(state.y / state.sum - 3.5) < 1e-12 && state.max == 1000,
               "scores 0 0, then 1000 1000: y is 3.5, yours %g; max is 1000, yours %g",
               shown(state.y / state.sum), state.max)) {
        if (state.max == 0)
            hint("exp(1000 - 0) is infinite: the max must grow with the scores, and what was "
                 "summed with the old one must be scaled to the new one");
        ok = false;
    }
    const double blocked[] = {-INFINITY, -INFINITY};
    state = start;
    online_add(&state, 2, blocked, v);
    online_add(&state, N, s, v);
    online_add(&state, 2, blocked, v);
    if (!holds(fabs(state.y / state.sum - right) < 1e-12,
               "blocks with only blocked keys, before and after, change nothing"))
        hint("-inf - -inf is NaN: as long as the new max is -infinity there is nothing to add");
    return ok;
}

static void name_backward(const struct online *end, const double *ds, const double *dv)
{
    const double y = end->y / end->sum;
    if (fabs(dv[N - 1] - dy * a[N - 1] * end->sum) < 1e-12)
        hint("a is exp(s - max) / sum: the sum is missing");
    else if (!(fabs(dv[N - 1] - dy * a[N - 1]) <= 1e-12))
        hint("dv_j = a_j dy with a_j = exp(s_j - max) / sum, of the end's max and sum");
    else if (fabs(ds[N - 1] - a[N - 1] * dy * v[N - 1]) < 1e-12)
        hint("g is dy v_j, and the average of all g must be subtracted");
    else if (fabs(ds[N - 1] - a[N - 1] * (dy * v[N - 1] - dy * end->y)) < 1e-9)
        hint("the state's y is still to be divided by the sum");
    else if (fabs(ds[N - 1] - a[N - 1] * (dy * v[N - 1] - y)) < 1e-12)
        hint("the average of the g is dy y, not y");
    else
        hint(
            "is your average that of this block's keys only? sum_j a_j g_j goes over all keys; but "
            "it is sum_j a_j v_j dy, and so y dy, which the state knows");
}

static void test_backward(void)
{
    double right[N], right_dv[N], ds[N], dv[N], average = 0;
    struct online end = start;
    for (int j = 0; j < N; j++) {
        end.max = fmax(end.max, s[j]);
        average += a[j] * dy * v[j];
    }
    for (int j = 0; j < N; j++) {
        end.sum += exp(s[j] - end.max);
        end.y += exp(s[j] - end.max) * v[j];
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
    holds(fabs(state.y / state.sum - 1) < 1e-9, "and the mean of values that are all 1 is 1");
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
