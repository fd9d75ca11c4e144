/* softback explain wrong-gradient and gradcheck: what happens to a model trained with a wrong
   softmax, and how a check of gradients finds the mistake. */
#include "autograd/gradcheck.h"
#include "autograd/operation.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/mathematics.h"
#include <math.h>

static const char *wrong_name(enum wrong wrong)
{
    static const char *const names[WRONGS] = {"a(g - avg): right", "a(1-a)g: the mistake",
                                              "a(1-a)g less its mean", "0: q and k frozen"};
    return names[wrong];
}

/* ---- the gradients of enum wrong, as lesson 4 writes them ---- */

static void right_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    float average = 0;
    for (int64_t i = 0; i < n; i++)
        average += a[i] * g[i];
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (g[i] - average);
}

static void mistake(int64_t n, const float *a, const float *g, float *ds)
{
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (1 - a[i]) * g[i];
}

static void centred_mistake(int64_t n, const float *a, const float *g, float *ds)
{
    float mean = 0;
    mistake(n, a, g, ds);
    for (int64_t i = 0; i < n; i++)
        mean += ds[i] / (float)n;
    for (int64_t i = 0; i < n; i++)
        ds[i] -= mean;
}

static void no_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    (void)a, (void)g;
    for (int64_t i = 0; i < n; i++)
        ds[i] = 0;
}

reverse_gradient *const wrong_gradients[WRONGS] = {right_gradient, mistake, centred_mistake,
                                                   no_gradient};

/*
 * ---- a softmax with these backwards ----
 *
 * An operation defined outside the library, which itself has no wrong gradient.
 */

static void row_backward_by(enum wrong wrong, int64_t C, const double *a, const double *g,
                            double *dx)
{
    double average = 0, mean = 0;
    for (int64_t c = 0; c < C; c++) {
        average += a[c] * g[c];
        mean += a[c] * (1 - a[c]) * g[c] / (double)C;
    }
    for (int64_t c = 0; c < C; c++) {
        double diagonal = a[c] * (1 - a[c]) * g[c];
        if (wrong == WRONG_NONE)
            dx[c] += a[c] * (g[c] - average);
        else if (wrong != WRONG_ZERO)
            dx[c] += wrong == WRONG_CENTRED ? diagonal - mean : diagonal;
    }
}

static bool backward(sb_node *node)
{
    const enum wrong *wrong = sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    const double *a = sb_tensor_data(sb_node_result(node, 0));
    const double *g = sb_tensor_data(sb_node_dy(node, 0));
    double *to = sb_tensor_data(dx);
    int64_t C = sb_tensor_dim(dx, -1);
    for (int64_t i = 0; a && g && to && i < sb_tensor_size(dx); i += C)
        row_backward_by(*wrong, C, a + i, g + i, to + i);
    return a && g && to;
}

static const sb_operation operation = {"wrong_softmax", "x", backward, false, false};

/* Softmax over the last axis, in float64. */
static sb_tensor *wrong_softmax(sb_tensor *x, enum wrong wrong)
{
    sb_node *node = sb_node_new(&operation, 1, &x, 1, &wrong, sizeof wrong);
    int64_t dim[4];
    int rank = sb_tensor_rank(x);
    for (int i = 0; i < rank && i < 4; i++)
        dim[i] = sb_tensor_dim(x, i);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, rank, dim) : NULL;
    double *to = y ? sb_tensor_data(y) : NULL;
    sb_tape tape; /* forward is the library's */
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *right = to ? sb_softmax(x) : NULL;
    bool ok = right && sb_tensor_read(right, to);
    return sb_tape_end(&tape) && ok ? y : NULL;
}

/* ---- wrong-gradient: training ---- */

enum { SEEDS = 3 };

/* Trains with one gradient from each seed, and adds the row of their means and standard errors. */
static void write_row(struct page *page, enum wrong wrong, uint64_t seed, int steps,
                      double right[SEEDS])
{
    double early[SEEDS] = {0}, last[SEEDS] = {0}, error[3];
    for (int i = 0; i < SEEDS; i++) {
        struct reverse_result r = {0};
        page_need(page, page->failed ||
                            reverse_train(wrong_gradients[wrong], seed + (uint64_t)i, steps, &r));
        early[i] = r.early;
        last[i] = r.last;
        right[i] = 100 * r.accuracy;
    }
    const double means[] = {row_mean(SEEDS, early, &error[0]), row_mean(SEEDS, last, &error[1]),
                            row_mean(SEEDS, right, &error[2])};
    PAGE_NUMBERS(page, wrong_name(wrong), means[0], error[0], means[1], error[1], means[2],
                 error[2]);
}

static void write_table(struct page *page, uint64_t seed, int steps, double right[WRONGS][SEEDS])
{
    page_table(page, "training",
               "ds in attention | at 100 .2 | error ~1 | at end .2 | its error ~1 | right % .0 | "
               "error % .0");
    for (int wrong = 0; wrong < WRONGS; wrong++)
        write_row(page, (enum wrong)wrong, seed, steps, right[wrong]);
}

/* From teach/wrong_gradients.md. */
static void write_measured(struct page *page)
{
    static const char *const rows[][4] = {
        {"a(g - avg): right", "both", "99 to 100 %", "100 %"},
        {"a(1-a)g: the mistake", "neither", "13 to 29 %", "12 to 18 %"},
        {"a(1-a)g less its mean", "shift of s", "15 to 58 %", "14 to 27 %"},
        {"a(1-a)(g - avg)", "shift of g", "68 to 98 %", "20 to 47 %"},
        {"a(1-a)(g - avg) less its mean", "both", "88 to 100 %", "24 to 58 %"}};
    page_table(page, "right digits of the live page's model",
               "ds | ignores | rate 0.003 or less | 0.01 (race)");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        PAGE_ROW(page, cell_word(rows[i][0]), cell_word(rows[i][1]), cell_word(rows[i][2]),
                 cell_word(rows[i][3]));
}

static void write_wrong_gradient(struct page *page, const struct explain_options *o)
{
    const int steps = o->steps > 0 ? (int)o->steps : 800;
    const uint64_t seed = o->seed > 0 ? (uint64_t)o->seed : 1; /* those of lesson 4 */
    double right[WRONGS][SEEDS] = {{0}};
    page_title(page, "a wrong gradient that learns at first");
    page_text(page,
              "The encoder-decoders of lesson 4 learn to reverse %d symbols of %d, %d steps each. "
              "They differ in one line: the gradient of the softmax in attention. A row has the "
              "loss at step 100 and at the end, and the share of right symbols: means of the same "
              "%d seeds of weights and data, from %lld on; \"error\" is the standard error of the "
              "number before it. Guessing has a loss of ln %d = %.4g, and %.3g %% right.",
              REVERSE_LENGTH, REVERSE_SYMBOLS, steps, SEEDS, (long long)seed, REVERSE_SYMBOLS,
              math_log(REVERSE_SYMBOLS), 100.0 / REVERSE_SYMBOLS);
    write_table(page, seed, steps, right);
    int worse = 0;
    for (int i = 0; i < SEEDS; i++)
        worse += right[WRONG_DIAGONAL][i] < right[WRONG_ZERO][i];
    page_text(
        page,
        "With the mistake the loss falls at first, since many ds have the right sign. But "
        "its ds do not sum to 0, so scores drift and rows saturate. Here %d of %d models with "
        "the mistake have fewer symbols right in the end than with no gradient at all.",
        worse, SEEDS);
    page_text(
        page,
        "The Jacobian of softmax, J_ij = da_i/ds_j, ignores two shifts. A shift of all scores "
        "changes no weight: the rows of J sum to 0, and so do the ds. A shift of all g changes no "
        "ds, since the weights always sum to 1: the columns of J sum to 0. The mistake a(1 - a)g "
        "has neither of these two properties. With its mean subtracted it has the first, with the "
        "average subtracted from g the second, with both changes both. The small model of lesson "
        "4 learns with the first alone, with each of 3 seeds. The model of the live page does "
        "not: it needs both, and a learning rate of 0.003 or less. With the second alone it "
        "learns in part there. Only the correct gradient learns each time.");
    write_measured(page);
    page_text(
        page,
        "A model can learn in spite of the mistake; which one does depends on the seed, and so "
        "the error is large. A falling loss does not prove a gradient right. A gradient "
        "check does: softback explain gradcheck.");
}

const struct topic topic_wrong_gradient = {
    "wrong-gradient", "a model with the right and three wrong softmax gradients",
    TAKES_STEPS | TAKES_SEED, NULL, write_wrong_gradient};

/* ---- gradcheck: the step of a difference, and what a check reports of mistakes ---- */

enum { ROWS = 64, KEYS = 4, STEPS = 7 };

/* Random scores and upstream gradients, alike on every machine. */
struct sample {
    double s[ROWS * KEYS], g[ROWS * KEYS], ds[ROWS * KEYS];
};

static bool sample_make(struct sample *sample)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int i = 0; i < ROWS * KEYS; i++) {
        sample->s[i] = sb_random_normal(&random);
        sample->g[i] = sb_random_normal(&random);
    }
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = variable_of(SB_F64, SB_SHAPE(ROWS, KEYS), sample->s);
    sb_tensor *g = constant_of(SB_F64, SB_SHAPE(ROWS, KEYS), sample->g);
    bool ok = sb_backward_from(sb_softmax(x), g) && sb_tensor_read(sb_tensor_grad(x), sample->ds);
    return sb_tape_end(&tape) && ok;
}

/* L of each row, sum_i g_i a_i, in a dtype, with every row's first score moved by h. */
static bool losses(const struct sample *sample, sb_dtype dtype, double h, double loss[ROWS])
{
    double s[ROWS * KEYS];
    for (int i = 0; i < ROWS * KEYS; i++)
        s[i] = sample->s[i] + (i % KEYS == 0 ? h : 0);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = constant_of(dtype, SB_SHAPE(ROWS, KEYS), s);
    sb_tensor *g = constant_of(dtype, SB_SHAPE(ROWS, KEYS), sample->g);
    sb_tensor *sum = sb_sum(sb_multiply(sb_softmax(x), g), -1, false);
    bool ok = sum && sb_tensor_read(sum, loss);
    return sb_tape_end(&tape) && ok;
}

/* The root mean square error of the difference in ds_0, over the rows, and the standard error of
   that. */
struct deviation {
    double size, error;
};

static struct deviation deviation_of(struct page *page, const struct sample *sample, sb_dtype dtype,
                                     double h)
{
    double plus[ROWS] = {0}, minus[ROWS] = {0}, mean = 0, squares = 0;
    page_need(page, losses(sample, dtype, h, plus) && losses(sample, dtype, -h, minus));
    for (int r = 0; r < ROWS; r++) {
        const double error = (plus[r] - minus[r]) / (2 * h) - sample->ds[r * KEYS];
        mean += error * error / ROWS;
        squares += pow(error, 4) / ROWS;
    }
    const double of_mean = sqrt((squares - mean * mean) / (ROWS - 1));
    return (struct deviation){sqrt(mean), of_mean / (2 * sqrt(mean))};
}

static void write_steps(struct page *page)
{
    struct sample sample;
    page_need(page, sample_make(&sample));
    page_table(page, "steps",
               "h ~1 | float32 ~1 | +- f32 ~1 | correct digits ~2 | float64 ~1 | +- f64 ~1 | "
               "correct digits ~2");
    double h = 1;
    for (int i = 0; i < STEPS; i++) {
        h /= 10;
        const struct deviation single = deviation_of(page, &sample, SB_F32, h);
        const struct deviation exact = deviation_of(page, &sample, SB_F64, h);
        PAGE_NUMBERS(page, NULL, h, single.size, single.error, -log10(single.size), exact.size,
                     exact.error, -log10(exact.size));
    }
}

static sb_tensor *function(void *wrong, sb_tensor *const x[])
{
    return wrong_softmax(x[0], *(const enum wrong *)wrong);
}

static void write_checks(struct page *page)
{
    static const double s[] = {2, 1, 0.1, -1};
    page_table(page, "checks", "ds | sb_gradcheck | backward .4 | difference .4");
    for (enum wrong i = 0; i < WRONGS; i++) {
        sb_tensor *x = sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 4), s));
        sb_gradcheck_result r = {0};
        bool right = x && sb_gradcheck(function, &i, &x, 1, NULL, &r);
        page_need(page, x && (right || r.input == 0));
        sb_tensor_release(x);
        PAGE_ROW(page, cell_word(wrong_name(i)), cell_word(right ? "passes" : "fails"),
                 right ? cell_word("") : cell_of(r.backward),
                 right ? cell_word("") : cell_of(r.difference));
    }
}

static void write_gradcheck(struct page *page, const struct explain_options *o)
{
    (void)o;
    page_title(page, "how to trust a gradient");
    page_text(
        page,
        "The central difference (L(s + h) - L(s - h)) / 2h against ds = a (g - avg): root mean "
        "square of its error, over %d random rows of %d scores, and the standard error of that.",
        ROWS, KEYS);
    write_steps(page);
    page_text(
        page,
        "The error is U-shaped. With large h it is the truncation error, which falls with h^2; "
        "with small h it is the rounding of L, which grows with 1/h. In float32 at best some "
        "five digits are correct, in float64 ten or more. So the check runs in float64, at "
        "h = 1e-5. (Rounding differs between machines, so these errors differ slightly.)");
    page_text(
        page,
        "sb_gradcheck of a softmax defined outside the library, with right and wrong gradients; "
        "of a failure, the worst element:");
    write_checks(page);
}

const struct topic topic_gradcheck = {
    "gradcheck", "the step of a difference, and what a check reports of mistakes", 0, NULL,
    write_gradcheck};
