/* softback explain hessian: second derivatives of one row, exact and by differences. */
#include "autograd/derivative.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "teach/explain/topics.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDEST_HESSIAN = 8, FUNCTIONS = 3 };

/* A row of scores, the target of its cross entropy, and p = softmax(s). */
struct sample {
    int n;
    int64_t target;
    double s[WIDEST_HESSIAN], p[EXPLAIN_NUMBERS];
};

typedef double matrix[WIDEST_HESSIAN][WIDEST_HESSIAN];

static bool check(const struct explain_options *o)
{
    const int n = o->list[SCORES].count ? o->list[SCORES].count : 4;
    if (n < 2 || n > WIDEST_HESSIAN)
        return sb_fail("--scores: there are %d; from 2 to %d can be shown", n, WIDEST_HESSIAN);
    if (o->target >= n)
        return sb_fail("--class: %lld is not the index of one of %d scores, from 0 to %d",
                       (long long)o->target, n, n - 1);
    return true;
}

/* ---- the functions ---- */

static sb_tensor *run_logsumexp(void *sample, sb_tensor *const x[])
{
    (void)sample;
    return sb_logsumexp(x[0]);
}

static sb_tensor *run_cross_entropy(void *sample, sb_tensor *const x[])
{
    const struct sample *s = sample;
    return sb_cross_entropy(
        x[0], sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(1), (double)s->target)), NULL);
}

static sb_tensor *run_weight(void *sample, sb_tensor *const x[])
{
    const struct sample *s = sample;
    return sb_slice(sb_softmax(x[0]), 1, s->target, 1);
}

static double entry_of_logsumexp(const struct sample *s, int i, int j)
{
    return s->p[i] * ((i == j) - s->p[j]);
}

/* Of p_t: the gradient is p_i ((i == t) - p_t), and this is its derivative. */
static double entry_of_weight(const struct sample *s, int i, int j)
{
    const int t = (int)s->target;
    const double *p = s->p;
    return p[i] * ((i == j) - p[j]) * ((i == t) - p[t]) - p[i] * p[t] * ((j == t) - p[j]);
}

static const struct {
    sb_function f;
    double (*entry)(const struct sample *s, int i, int j);
} functions[FUNCTIONS] = {{run_logsumexp, entry_of_logsumexp},
                          {run_cross_entropy, entry_of_logsumexp},
                          {run_weight, entry_of_weight}};

static bool sample_begin(struct sample *sample, const struct explain_options *o)
{
    const struct row row = row_of_options(o);
    *sample = (struct sample){.n = row.n, .target = o->target};
    memcpy(sample->s, row.s, sizeof sample->s);
    return row_forward(&row, sample->p);
}

/* ---- the Hessian in three ways ---- */

static bool hessian_exact(struct sample *s, sb_function f, double unused, matrix H)
{
    bool ok = true;
    (void)unused;
    for (int j = 0; ok && j < s->n; j++) {
        double unit[WIDEST_HESSIAN] = {0}, column[WIDEST_HESSIAN];
        unit[j] = 1;
        sb_tensor *x = sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, s->n), s->s), *hv = NULL;
        sb_tensor *v = sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, s->n), unit);
        ok = x && v && sb_hvp(f, s, &x, &v, 1, &hv) && sb_tensor_read(hv, column);
        for (int i = 0; ok && i < s->n; i++)
            H[i][j] = column[i];
        sb_tensor_release(x);
        sb_tensor_release(v);
        sb_tensor_release(hv);
    }
    return ok;
}

/* f with score a moved by da and score b by db, and its gradient. */
static bool evaluate(struct sample *s, sb_function f, int a, double da, int b, double db,
                     double *loss, double gradient[])
{
    double moved[WIDEST_HESSIAN];
    for (int i = 0; i < s->n; i++)
        moved[i] = s->s[i] + (i == a ? da : 0) + (i == b ? db : 0);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = variable_of(SB_F64, SB_SHAPE(1, s->n), moved);
    sb_tensor *y = f(s, &x);
    const bool ok = y && sb_backward(y) && sb_tensor_read(sb_tensor_grad(x), gradient);
    *loss = ok ? sb_tensor_value(y) : 0;
    return sb_tape_end(&tape) && ok;
}

/* (g(x + h e_j) - g(x - h e_j)) / 2h for the gradient g. */
static bool hessian_of_gradients(struct sample *s, sb_function f, double h, matrix H)
{
    double loss, up[WIDEST_HESSIAN], down[WIDEST_HESSIAN];
    for (int j = 0; j < s->n; j++) {
        if (!evaluate(s, f, j, h, j, 0, &loss, up) || !evaluate(s, f, j, -h, j, 0, &loss, down))
            return false;
        for (int i = 0; i < s->n; i++)
            H[i][j] = (up[i] - down[i]) / (2 * h);
    }
    return true;
}

/* The same from f alone, by four values for each entry. */
static bool hessian_of_losses(struct sample *s, sb_function f, double h, matrix H)
{
    double unused[WIDEST_HESSIAN], y[4];
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++) {
            for (int k = 0; k < 4; k++)
                if (!evaluate(s, f, i, k & 1 ? -h : h, j, k & 2 ? -h : h, &y[k], unused))
                    return false;
            H[i][j] = (y[0] - y[1] - y[2] + y[3]) / (4 * h * h);
        }
    return true;
}

/* ---- the page ---- */

static void write_matrix(struct page *page, const char *name, const struct sample *s, matrix H)
{
    row_table(page, name, "i .0 | s .3 | p .4", s->n);
    for (int i = 0; i < s->n; i++) {
        const struct page_cell cells[] = {cell_of(i), cell_of(s->s[i]), cell_of(s->p[i])};
        row_cells(page, 3, cells, s->n, H[i]);
    }
}

struct bound {
    char text[16];
};

/* The largest error of an entry, rounded up to a power of ten: rounding errors have no digits that
   are the same on every machine. */
static struct bound bound_of(double error)
{
    struct bound bound;
    snprintf(bound.text, sizeof bound.text, "< 1e%d", (int)ceil(log10(fmax(error, 1e-15)) - 1e-9));
    return bound;
}

static bool add_error(const struct sample *s, int function, matrix H, double *error)
{
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++) {
            const double off = fabs(H[i][j] - functions[function].entry(s, i, j));
            *error = off <= *error ? *error : off;
        }
    return isfinite(*error);
}

typedef bool compute(struct sample *s, sb_function f, double h, matrix H);

static void write_errors(struct page *page, struct sample *s)
{
    static const struct {
        const char *name;
        compute *compute;
        double h;
    } ways[] = {{"sb_hvp", hessian_exact, 0},
                {"gradients", hessian_of_gradients, 1e-1},
                {"gradients", hessian_of_gradients, 1e-3},
                {"gradients", hessian_of_gradients, 3e-6},
                {"gradients", hessian_of_gradients, 3e-8},
                {"losses", hessian_of_losses, 1e-1},
                {"losses", hessian_of_losses, 1e-3},
                {"losses", hessian_of_losses, 2e-5},
                {"losses", hessian_of_losses, 2e-7}};
    page_table(page, "largest error of an entry", "computed by | h ~1 | error");
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        double error = 0;
        for (int k = 0; k < FUNCTIONS; k++) {
            matrix H = {0};
            page_need(page, ways[w].compute(s, functions[k].f, ways[w].h, H) &&
                                add_error(s, k, H, &error));
        }
        PAGE_ROW(page, cell_word(ways[w].name),
                 ways[w].h > 0 ? cell_of(ways[w].h) : cell_word("none"),
                 cell_word(bound_of(error).text));
    }
}

static void write(struct page *page, const struct explain_options *o)
{
    struct sample s;
    matrix H = {0}, expected, weight = {0};
    page_need(page, sample_begin(&s, o) && hessian_exact(&s, run_logsumexp, 0, H) &&
                        hessian_exact(&s, run_weight, 0, weight));
    if (page->failed)
        return;
    for (int i = 0; i < s.n; i++)
        for (int j = 0; j < s.n; j++)
            expected[i][j] = entry_of_logsumexp(&s, i, j);
    page_title(page, "second derivatives of a row, exact");
    page_text(page, "The gradient of log-sum-exp is p = softmax(s). So its Hessian is the Jacobian "
                    "of softmax, H = diag(p) - p pᵀ. Cross entropy is log-sum-exp minus s_t, which "
                    "is linear: it has the same H for every target t.");
    page_text(page, "EXACT  sb_hvp gives H v, by one forward and one backward pass with dual "
                    "numbers; v = e_j, a 1 in place j, gives column j:");
    write_matrix(page, "Hessian of logsumexp, by sb_hvp", &s, H);
    page_text(page, "FORMULA  p_i ((i == j) - p_j), from p alone:");
    write_matrix(page, "diag(p) - p pᵀ", &s, expected);
    page_text(page,
              "vᵀ H v is the variance of v under p. It is never negative, so log-sum-exp "
              "and cross entropy are convex in the scores. A single weight p_t is not "
              "(t = %lld here):",
              (long long)s.target);
    write_matrix(page, "Hessian of the weight p_t, by sb_hvp", &s, weight);
    page_text(page,
              "ERROR  Differences of gradients subtract two gradients, differences of losses "
              "four losses: a large step h has the truncation error, a small one the rounding "
              "error, which grows as 1/h and as 1/h^2. Dual numbers subtract nothing and have "
              "no h to choose. The largest error of an entry, of all these functions:");
    write_errors(page, &s);
    page_text(page, "One H v costs a few times as much as a gradient, whatever the number of "
                    "parameters; H itself is never stored. With --model FILE and --task NAME or "
                    "--data FILE this gives the curvature of a trained model.");
}

const struct topic topic_hessian = {"hessian",
                                    "second derivatives of a row; the curvature of a model",
                                    1 << SCORES | TAKES_TARGET, check, write};
