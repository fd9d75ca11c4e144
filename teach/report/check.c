#include "autograd/gradcheck.h"
#include "models/model_twin.h"
#include "teach/report/report.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <math.h>

enum { STEPS = 7, SAMPLE = 12, SINGLE = 0, EXACT = 1, TWINS = 2 };

/* Backward in float32 has some three correct digits where a loss is small. Gradients that are 0 in
   theory, such as those of key biases, are rounding: at most a millionth of the largest. */
static const double TOLERANCE = 1e-2, ROUNDING = 1e-6;

/* Where backward agrees in float64, float32 may be off by more: 1 - p of a confident model has few
   digits. A wrong sign or factor is off by more than this. */
static const double COARSE = 0.25;

static const char *const words[CHECK_WORDS] = {"agrees", "both 0", "rounding", "float32 rounds",
                                               "DIFFERS"};

static double error_of(const struct checked *c, double backward)
{
    const double off = fabs(backward - c->difference);
    return off == 0 ? 0 : off / c->largest_here;
}

double check_error(const struct checked *c)
{
    return error_of(c, c->backward);
}

enum check_word check_word(const struct checked *c)
{
    const double none = ROUNDING * c->largest;
    if (fabs(c->difference) <= none && c->largest_here > 0 && c->largest_here <= none)
        return CHECK_ROUNDING;
    if (fabs(c->difference) <= none && c->backward == 0)
        return CHECK_ZERO;
    if (check_error(c) <= TOLERANCE)
        return CHECK_AGREES;
    const bool coarse = check_error(c) <= COARSE && error_of(c, c->exact) <= TOLERANCE;
    return coarse ? CHECK_COARSE : CHECK_DIFFERS;
}

/* A parameter in both twins. */
struct place {
    const char *name;
    sb_tensor *w[TWINS];
    int64_t size, top; /* top: where the gradient is largest */
    double largest;
};

struct check {
    struct model_twin twin[TWINS];
    int64_t count;
    struct place *place;
    double largest;
    double error[TWINS][STEPS]; /* of differences, by their step */
    int step[TWINS];            /* the best one */
    int64_t words[CHECK_WORDS];
};

static double step_at(int k)
{
    return pow(10, -(k + 1));
}

static bool find_places(struct check *c)
{
    c->count = sb_parameters_count(c->twin[SINGLE].weights);
    c->place = memory_new((size_t)(c->count + 1) * sizeof *c->place);
    for (int64_t p = 0; c->place && p < c->count; p++) {
        struct place *place = &c->place[p];
        place->name = sb_parameters_name(c->twin[SINGLE].weights, p);
        for (int t = 0; t < TWINS; t++)
            place->w[t] = sb_parameters_get(c->twin[t].weights, p);
        place->size = sb_tensor_size(place->w[SINGLE]);
        double *g = memory_new((size_t)(place->size + 1) * sizeof *g);
        if (!g)
            return sb_fail("report: out of memory for a gradient");
        const sb_tensor *grad = sb_tensor_grad(place->w[SINGLE]);
        const bool ok = !grad || sb_tensor_read(grad, g);
        for (int64_t i = 0; ok && i < place->size; i++)
            if (fabs(g[i]) > place->largest) {
                place->largest = fabs(g[i]);
                place->top = i;
            }
        memory_free(g);
        if (!ok)
            return false;
        c->largest = fmax(c->largest, place->largest);
    }
    return c->place || sb_fail("report: out of memory for the gradient check");
}

static double backward_at(const struct place *place, int twin, int64_t i)
{
    const sb_tensor *grad = sb_tensor_grad(place->w[twin]);
    return grad ? sb_tensor_get(grad, i) : 0;
}

/* The root mean square error of differences, over the largest elements of some parameters;
   gradients that are rounding are left out. */
static bool error_of_step(struct check *c, int twin, int k)
{
    const int64_t stride = c->count / SAMPLE + 1;
    double sum = 0;
    int64_t taken = 0;
    for (int64_t p = 0; p < c->count; p += stride) {
        const struct place *place = &c->place[p];
        double difference;
        if (place->largest <= ROUNDING * c->largest)
            continue;
        if (!model_twin_difference(&c->twin[twin], place->w[twin], place->top, step_at(k),
                                   &difference))
            return false;
        const double error = (difference - backward_at(place, EXACT, place->top)) / place->largest;
        sum += error * error;
        taken++;
    }
    c->error[twin][k] = taken > 0 ? sqrt(sum / (double)taken) : 0;
    return true;
}

static bool choose_steps(struct check *c)
{
    for (int t = 0; t < TWINS; t++)
        for (int k = 0; k < STEPS; k++) {
            if (!error_of_step(c, t, k))
                return false;
            if (c->error[t][k] < c->error[t][c->step[t]])
                c->step[t] = k;
        }
    return true;
}

static bool add_element(struct html *html, struct check *c, const struct place *place, int64_t i)
{
    double difference[TWINS];
    for (int t = 0; t < TWINS; t++)
        if (!model_twin_difference(&c->twin[t], place->w[t], i, step_at(c->step[t]),
                                   &difference[t]))
            return false;
    const struct checked e = {backward_at(place, SINGLE, i), backward_at(place, EXACT, i),
                              difference[EXACT], place->largest, c->largest};
    const enum check_word word = check_word(&e);
    c->words[word]++;
    html_row(html, place->name);
    html_say(html, "<td>%lld</td><td>%.5g</td><td>%.5g</td><td>%.1e</td><td>%s</td><td>%.2g</td>",
             (long long)i, e.backward, e.difference, check_error(&e), words[word],
             difference[SINGLE]);
    return true;
}

/* The largest one, and those at a third and at two thirds of the parameter. */
static bool add_elements(struct html *html, struct check *c)
{
    for (int64_t p = 0; p < c->count; p++) {
        const struct place *place = &c->place[p];
        const int64_t third = place->size / 3, other = 2 * place->size / 3;
        const bool ok =
            add_element(html, c, place, place->top) &&
            (third == place->top || add_element(html, c, place, third)) &&
            (other == place->top || other == third || add_element(html, c, place, other));
        if (!ok)
            return false;
    }
    return true;
}

static void add_steps(struct html *html, const struct check *c)
{
    html_table(html, "Error of the differences, by their step h", "h");
    for (int k = 0; k < STEPS; k++)
        html_say(html, "<th scope=\"col\">%.0e</th>", step_at(k));
    for (int t = EXACT; t >= SINGLE; t--) {
        html_row(html, t ? "float64" : "float32");
        for (int k = 0; k < STEPS; k++)
            html_cell(html, k == c->step[t] ? "<strong>%.2g</strong>" : "%.2g", c->error[t][k]);
    }
    html_table_end(html);
}

static const char single_rounding[] =
    " Elements that differ although the exact check below agrees are rounding of float32: backward "
    "is "
    "right, but the weights are very large, as after a learning rate that was too high.";

static void add_summary(struct html *html, const struct check *c)
{
    html_say(
        html,
        "<p><strong>%lld elements agree, %lld differ.</strong> For %lld more, backward and "
        "difference are both 0: nothing in this text depends on them. %lld are rounding: 0 in "
        "theory, as for key biases, since a softmax ignores what all of its scores share.</p>\n",
        (long long)c->words[CHECK_AGREES], (long long)c->words[CHECK_DIFFERS],
        (long long)c->words[CHECK_ZERO], (long long)c->words[CHECK_ROUNDING]);
    if (c->words[CHECK_COARSE] > 0)
        html_say(html,
                 "<p>%lld agree in float64 alone: where the model is confident, its gradients "
                 "begin with "
                 "1 - p, of which float32 keeps few digits.</p>\n",
                 (long long)c->words[CHECK_COARSE]);
    html_say(html,
             "<p>Backward in float32 is compared with (L(w + h) - L(w - h)) / 2h, for the loss of "
             "the text above, with h relative to max(1, |w|). The error of differences is U-shaped "
             "in h: a large step has the truncation error, which grows as h², a small one the "
             "rounding of the loss, which grows as 1/h. In float32 it is %.0e at best, at h = "
             "%.0e, since a loss has only seven digits; where both losses round to the same "
             "number, the difference is 0 and the error 1. So the check takes differences of the "
             "same weights in float64, with h = %.0e, where it is %.0e.</p>\n",
             c->error[SINGLE][c->step[SINGLE]], step_at(c->step[SINGLE]), step_at(c->step[EXACT]),
             c->error[EXACT][c->step[EXACT]]);
    html_say(
        html,
        "<p>Errors are relative to the largest gradient of the parameter. Up to %.0e counts as "
        "agreement, since backward in float32 may lose that much where a loss is small.%s</p>\n",
        TOLERANCE, c->words[CHECK_DIFFERS] == 0 ? "" : single_rounding);
}

/*
 * ---- the exact check ----
 *
 * Backward of every parameter against derivatives by dual numbers, and products with the Hessian,
 * which must be symmetric and agree with differences of gradients.
 */

static const double GRADIENT = MODEL_TOLERANCE, SYMMETRY = MODEL_SYMMETRY,
                    CURVATURE = 1e-6; /* the largest errors */

/* Beside very large weights float64, too, may round this much. */
static const double UNDECIDED = 1e-4;
static const char undecided[] = "undecided: rounding, if the weights are very large";

static void add_row(struct html *html, const char *check, double error, double limit,
                    const char *otherwise)
{
    html_row(html, check);
    html_say(html, "<td>%.1e</td><td>%.0e</td><td>%s</td>", error, limit,
             error <= limit ? "agrees" : otherwise);
}

static void add_table(struct html *html, const sb_gradcheck_result *r, int64_t parameters)
{
    html_say(html,
             "<p>Dual numbers check all %lld parameters together, without differences: J v is "
             "the exact derivative of the loss along a random direction v, and H v that of the "
             "gradient, a product with the Hessian. Both are computed in float64.</p>\n",
             (long long)parameters);
    html_table(html, "Exact derivatives, first and second order", "check;error;at most;result");
    add_row(html, "gradient: g'v = J v", r->error, GRADIENT,
            r->error <= UNDECIDED ? undecided : "DIFFERS");
    if (r->error <= GRADIENT) {
        add_row(html, "Hessian: u'H v = v'H u", r->symmetry, SYMMETRY,
                r->symmetry <= UNDECIDED ? undecided : "DIFFERS");
        add_row(html, "H v = differences of gradients", r->curvature, CURVATURE,
                "differences are inexact");
    }
    html_table_end(html);
    if (r->error <= GRADIENT)
        html_say(html,
                 "<p>The differences (g(w + h v) - g(w - h v)) / 2h are taken with h = %.0e. They "
                 "are inexact where a relu changes sign between the two points, and where the "
                 "gradient is nearly 0; H v is not.</p>\n",
                 r->step);
}

/* Adds a table and what it says. The twin is in float64. */
static bool second_order_add(struct html *html, struct model_twin *twin)
{
    sb_gradcheck_result result = {0};
    if (sb_device_in_use() != sb_device_cpu()) {
        html_add(html, "<p>The exact check, by dual numbers, is made on the CPU only.</p>\n");
        return true;
    }
    const bool ok = model_twin_check(twin, 1, true, &result);
    if (ok)
        add_table(html, &result, sb_parameters_size(twin->weights));
    return ok;
}

/* ---- the part of a page ---- */

/* The elements are last on the page but computed first: the summary counts them. */
static bool add_all(struct html *html, struct check *c)
{
    struct html rows = {0};
    bool ok = add_elements(&rows, c);
    char *text = ok ? buffer_take(&rows.text) : NULL;
    buffer_free(&rows.text);
    if (ok && !text)
        ok = sb_fail("report: out of memory for the gradient check");
    if (ok) {
        html_add(html, "<h2>The gradient check</h2>\n");
        add_summary(html, c);
        add_steps(html, c);
        ok = second_order_add(html, &c->twin[EXACT]);
        html_add(html, "<details><summary>The elements</summary>\n");
        html_table(html, "", "parameter;element;backward;difference;error;result;in float32");
        html_add(html, text);
        html_table_end(html);
        html_add(html, "</details>\n");
    }
    memory_free(text);
    return ok;
}

bool check_add(struct html *html, const struct subject *subject)
{
    const sb_batch *batch = subject->example.batch;
    struct check c = {0};
    const bool ok = model_twin_open(&c.twin[SINGLE], &subject->model, batch, SB_F32) &&
                    model_twin_open(&c.twin[EXACT], &subject->model, batch, SB_F64) &&
                    model_twin_backward(&c.twin[SINGLE]) && model_twin_backward(&c.twin[EXACT]) &&
                    find_places(&c) && choose_steps(&c) && add_all(html, &c);
    model_twin_close(&c.twin[EXACT]);
    model_twin_close(&c.twin[SINGLE]);
    memory_free(c.place);
    return ok;
}
