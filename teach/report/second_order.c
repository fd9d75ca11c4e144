#include "teach/report/second_order.h"
#include "autograd/gradcheck.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <math.h>

static const double EXACT = 1e-12, SYMMETRIC = 1e-11, AGREES = 1e-6;

/* The checks of a whole model, and the step of the differences that agree best. */
struct second_order {
    sb_gradcheck_result result;
    double step;
};

static void add_row(struct html *html, const char *check, double error, double limit,
                    const char *otherwise)
{
    html_row(html, check);
    html_say(html, "<td>%.1e</td><td>%.0e</td><td>%s</td>", error, limit,
             error <= limit ? "agrees" : otherwise);
}

static void add_table(struct html *html, const struct second_order *s, int64_t parameters)
{
    html_say(html,
             "<p>Dual numbers check all %lld parameters together, without differences: J v is "
             "the exact derivative of the loss along a random direction v, and H v that of the "
             "gradient, a product with the Hessian. Both are computed in float64.</p>\n",
             (long long)parameters);
    html_table(html, "Exact derivatives, first and second order", "check;error;at most;result");
    add_row(html, "gradient: g'v = J v", s->result.error, EXACT, "DIFFERS");
    if (s->result.error <= EXACT) {
        add_row(html, "Hessian: u'H v = v'H u", s->result.symmetry, SYMMETRIC, "DIFFERS");
        add_row(html, "H v = differences of gradients", s->result.curvature, AGREES,
                "differences are inexact");
    }
    html_table_end(html);
    if (s->result.error <= EXACT)
        html_say(html,
                 "<p>The differences (g(w + h v) - g(w - h v)) / 2h are taken with h = %.0e. They "
                 "are inexact where a relu changes sign between the two points, and where the "
                 "gradient is nearly 0; H v is not.</p>\n",
                 s->step);
}

/* Smaller steps where differences do not agree: fewer relus change sign between the points. */
static bool compare(struct second_order *s, struct model_twin *twin, sb_tensor *const x[], int n)
{
    s->result.error = (double)NAN;
    for (double h = 1e-5; h > 5e-8; h /= 10) {
        const sb_gradcheck_options options = {
            .step = h, .method = SB_GRADCHECK_EXACT, .directions = 1, .second_order = true};
        sb_gradcheck_result result;
        sb_gradcheck(model_twin_loss, twin, x, n, &options, &result);
        if (isnan(result.error))
            return false;
        if (h == 1e-5 || result.curvature < s->result.curvature) {
            s->result = result;
            s->step = h;
        }
        if (result.ok || result.error > EXACT || result.symmetry > SYMMETRIC)
            break;
    }
    return true;
}

bool second_order_add(struct html *html, struct model_twin *twin)
{
    const int64_t n = sb_parameters_count(twin->weights);
    struct second_order s = {0};
    if (sb_device_in_use() != sb_device_cpu()) {
        html_add(html, "<p>The exact check, by dual numbers, is made on the CPU only.</p>\n");
        return true;
    }
    sb_tensor **x = memory_new((size_t)(n + 1) * sizeof *x);
    if (!x)
        return sb_fail("report: out of memory for %lld parameters", (long long)n);
    for (int64_t i = 0; i < n; i++)
        x[i] = sb_parameters_get(twin->weights, i);
    const bool ok = compare(&s, twin, x, (int)n);
    memory_free(x);
    if (ok)
        add_table(html, &s, sb_parameters_size(twin->weights));
    return ok;
}
