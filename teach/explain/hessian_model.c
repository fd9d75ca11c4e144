/* softback explain hessian --model: curvature of the loss of a trained model, in float64. */
#include "nn/parameters_derivative.h"
#include "teach/explain/model.h"
#include "tensor/storage.h"
#include <math.h>

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

/* ---- vectors over the parameters ---- */

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

/* ---- curvature ---- */

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

/* ---- the page ---- */

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
    if (ok && !page->failed)
        return page;
    page_free(page);
    return NULL;
}
