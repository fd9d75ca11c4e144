/* softback explain gradcheck: the step of a difference, and what a check reports of mistakes. */
#include "autograd/gradcheck.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include "teach/explain/wrong_softmax.h"
#include <math.h>

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

/* Of the difference in ds_0: the root mean square of its error over the rows, and the standard
   error of that. */
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

static void write(struct page *page, const struct explain_options *o)
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
    "gradcheck", "the step of a difference, and what a check reports of mistakes", 0, NULL, write};
