/* softback explain hessian: second derivatives of one row, exact and by differences; with --model
   the curvature of the loss of a trained model, in float64. */
#include "autograd/derivative.h"
#include "nn/parameters_derivative.h"
#include "ops/ops.h"
#include "teach/explain/model.h"
#include "teach/explain/row.h"
#include "tensor/storage.h"
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

/* The gradient of p_t is p_i ((i == t) - p_t), and this is its derivative. */
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

/* H from f alone, by four values for each entry. */
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

static bool add_error(const struct sample *s, int function, matrix H, double *error)
{
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++) {
            const double off = fabs(H[i][j] - functions[function].entry(s, i, j));
            *error = off <= *error ? *error : off;
        }
    return isfinite(*error);
}

static void write_errors(struct page *page, struct sample *s)
{
    static const struct {
        const char *name;
        bool (*compute)(struct sample *s, sb_function f, double h, matrix H);
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
        /* Rounded up to a power of ten: the digits of rounding errors depend on the machine. */
        char bound[16];
        snprintf(bound, sizeof bound, "< 1e%d", (int)ceil(log10(fmax(error, 1e-15)) - 1e-9));
        PAGE_ROW(page, cell_word(ways[w].name),
                 ways[w].h > 0 ? cell_of(ways[w].h) : cell_word("none"), cell_word(bound));
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
              "vᵀ H v is the variance of v under p. It is never negative, so log-sum-exp and cross "
              "entropy are convex in the scores. A single weight p_t is not (t = %lld here):",
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

/* ---- a trained model ---- */

enum { MOST_ITERATIONS = 200, STEPS = 5 };

/* Power iteration ends when |H v - l v| is this part of |l|. */
static const double RESIDUAL = 1e-3;

struct curvature {
    struct model_twin *twin;
    sb_parameters *gradient;
    double loss, norm, along; /* norm: |g|; along: gᵀ H g / gᵀ g */
    double eigenvalue, residual, cosine;
    int iterations;
};

/* Vectors over the parameters. */

static double *part_of(const sb_parameters *v, int64_t i)
{
    return sb_parameters_get(v, i)->data;
}

static int64_t part_size(const sb_parameters *v, int64_t i)
{
    return sb_tensor_size(sb_parameters_get(v, i));
}

static double product(const sb_parameters *a, const sb_parameters *b)
{
    double sum = 0;
    for (int64_t i = 0; i < sb_parameters_count(a); i++)
        for (int64_t k = 0; k < part_size(a, i); k++)
            sum += part_of(a, i)[k] * part_of(b, i)[k];
    return sum;
}

/* to += factor * v */
static void add(const sb_parameters *to, double factor, const sb_parameters *v)
{
    for (int64_t i = 0; i < sb_parameters_count(to); i++)
        for (int64_t k = 0; k < part_size(to, i); k++)
            part_of(to, i)[k] += factor * part_of(v, i)[k];
}

/* Divides by the length, unless it is 0; returns it. */
static double normalise(const sb_parameters *v)
{
    const double length = sqrt(product(v, v));
    for (int64_t i = 0; length > 0 && i < sb_parameters_count(v); i++)
        for (int64_t k = 0; k < part_size(v, i); k++)
            part_of(v, i)[k] /= length;
    return length;
}

static sb_parameters *multiply(const struct curvature *c, const sb_parameters *v)
{
    return sb_parameters_hvp(c->twin->weights, model_twin_loss, c->twin, v);
}

static bool loss_of(const struct curvature *c, double *loss)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = model_twin_loss(c->twin, NULL);
    *loss = y ? sb_tensor_value(y) : 0;
    return sb_tape_end(&tape) && y;
}

/* Fills gradient, of length 1, norm and loss. */
static bool find_gradient(struct curvature *c)
{
    sb_parameters *weights = c->twin->weights;
    sb_parameters_clear(weights);
    c->gradient = sb_parameters_vector(weights, NULL);
    bool ok = c->gradient && loss_of(c, &c->loss) && model_twin_backward(c->twin);
    for (int64_t i = 0; ok && i < sb_parameters_count(weights); i++) {
        const sb_tensor *grad = sb_tensor_grad(sb_parameters_get(weights, i));
        ok = !grad || sb_tensor_read(grad, part_of(c->gradient, i));
    }
    sb_parameters_clear(weights);
    c->norm = ok ? normalise(c->gradient) : 0;
    return ok;
}

static bool find_along(struct curvature *c)
{
    sb_parameters *hg = multiply(c, c->gradient);
    c->along = hg ? product(c->gradient, hg) : 0;
    sb_parameters_free(hg);
    return hg != NULL;
}

/* (L(w + h u) - 2 L(w) + L(w - h u)) / h^2 for the direction u of the gradient; restores w. */
static bool difference_along(struct curvature *c, const sb_parameters *original, double h,
                             double *curvature)
{
    sb_parameters *w = c->twin->weights;
    double up = 0, down = 0;
    add(w, h, c->gradient);
    bool ok = loss_of(c, &up);
    add(w, -2 * h, c->gradient);
    ok = ok && loss_of(c, &down);
    for (int64_t i = 0; i < sb_parameters_count(w); i++)
        ok = sb_tensor_write(sb_parameters_get(w, i), part_of(original, i)) && ok;
    *curvature = (up - 2 * c->loss + down) / (h * h);
    return ok;
}

/* One product of the power iteration: v becomes H v / |H v|. */
static bool iterate(struct curvature *c, sb_parameters **v)
{
    sb_parameters *hv = multiply(c, *v);
    if (!hv)
        return false;
    c->eigenvalue = product(*v, hv);
    c->cosine = fabs(product(*v, c->gradient));
    add(hv, -c->eigenvalue, *v);
    c->residual = sqrt(product(hv, hv));
    add(hv, c->eigenvalue, *v);
    normalise(hv);
    sb_parameters_free(*v);
    *v = hv;
    return true;
}

static bool find_eigenvalue(struct curvature *c)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    sb_parameters *v = sb_parameters_vector(c->twin->weights, &random);
    bool ok = v != NULL, near = false;
    if (ok)
        normalise(v);
    for (c->iterations = 0; ok && !near && c->iterations < MOST_ITERATIONS; c->iterations++) {
        ok = iterate(c, &v);
        near = c->residual <= RESIDUAL * fabs(c->eigenvalue);
    }
    sb_parameters_free(v);
    return ok;
}

/* ---- its page ---- */

static void write_along(struct page *page, struct curvature *c)
{
    sb_parameters *original = sb_parameters_vector(c->twin->weights, NULL);
    page_need(page, original != NULL);
    if (original)
        add(original, 1, c->twin->weights);
    page_text(
        page,
        "ALONG THE GRADIENT  gᵀ H g / gᵀ g, with one product H g, and by the losses at "
        "three points, w - h u, w and w + h u, where u = g / |g|. A relu whose input changes sign "
        "between them adds its kink to such a difference; H has no kinks:");
    page_table(page, "curvature along the gradient", "computed by | h ~1 | curvature ~10");
    PAGE_ROW(page, cell_word("H v"), cell_word("none"), cell_of(c->along));
    for (int k = 0; original && k < STEPS; k++) {
        const double h = pow(10, -(k + 1));
        double curvature = 0;
        page_need(page, difference_along(c, original, h, &curvature));
        PAGE_NUMBERS(page, "losses", h, curvature);
    }
    sb_parameters_free(original);
}

static void write_eigenvalue(struct page *page, const struct curvature *c)
{
    page_text(page,
              "LARGEST EIGENVALUE  by power iteration: v becomes H v / |H v|, and l = vᵀ H v. "
              "H is symmetric, so one of its eigenvalues is within the residual |H v - l v| "
              "of l; it is the largest in size unless v started orthogonal to it.");
    page_table(page, "power iteration",
               "iterations .0 | eigenvalue ~6 | residual ~2 | cosine to g ~2");
    PAGE_NUMBERS(page, NULL, c->iterations, c->eigenvalue, c->residual, c->cosine);
    if (c->residual > RESIDUAL * fabs(c->eigenvalue))
        page_text(page,
                  "After %d iterations the residual is still above %g of the eigenvalue: "
                  "the next eigenvalues are close to it.",
                  MOST_ITERATIONS, RESIDUAL);
    if (c->eigenvalue > 0)
        page_text(page,
                  "Gradient descent without momentum is unstable along this direction at a "
                  "rate above 2 / l = %.3g (Cohen et al. 2021).",
                  2 / c->eigenvalue);
}

struct page *model_hessian_page(struct model_twin *twin)
{
    struct page *page = page_new("hessian");
    struct curvature c = {.twin = twin};
    const bool ok = page && find_gradient(&c) && find_along(&c) && find_eigenvalue(&c);
    if (ok) {
        const long long pairs = (long long)sb_tensor_dim(sb_batch_get(twin->batch, "source"), 0);
        page_title(page, "curvature of a trained model");
        page_text(page,
                  "%lld parameters as float64, and one batch of %lld pair%s. The loss is "
                  "%.6g, the length of its gradient |g| = %.4g. Products H v are exact "
                  "(sb_parameters_hvp); H is never stored.",
                  (long long)sb_parameters_size(twin->weights), pairs, pairs == 1 ? "" : "s",
                  c.loss, c.norm);
        write_along(page, &c);
        write_eigenvalue(page, &c);
    }
    sb_parameters_free(c.gradient);
    if (page)
        page_need(page, ok);
    return page;
}
