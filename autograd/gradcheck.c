#include "autograd/gradcheck_parts.h"
#include "autograd/replicas.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    ARRAYS = 7, /* number of arrays in a struct gradient */
    MOST_ELEMENTS = 4096
}; /* that are compared one by one after an exact check has failed */

struct aside {
    sb_tensor *grad;
    bool current;
};

struct check {
    struct evaluation evaluation;
    sb_tensor *const *x;
    int n;
    sb_gradcheck_options options; /* the tolerance is 0 until the method is chosen */
    struct gradient *gradient;    /* of each input */
    struct aside *aside;          /* the gradient that each input had before */
};

/* Runs the first backward, without existing gradients. */
static bool backward_afresh(struct check *c)
{
    if (!evaluation_backward(&c->evaluation, &c->evaluation.up))
        return false;
    for (int j = 0; j < c->n; j++) {
        struct gradient *g = &c->gradient[j];
        const sb_tensor *grad = sb_tensor_grad(g->x);
        g->missing = !grad;
        if (g->n > 0 && grad && !sb_tensor_read(grad, g->backward))
            return false;
    }
    for (int j = 0; j < c->n; j++)
        sb_tensor_clear_grad(c->x[j]); /* only now, because a tensor may be two inputs */
    return true;
}

/* Gives an input a gradient of the same magnitude as the one from backward, for backward to add
   to. */
static bool fill_before(struct gradient *g)
{
    sb_tensor *x = g->x;
    double largest = 0;
    for (int64_t i = 0; i < g->n; i++)
        largest = isfinite(g->backward[i]) ? fmax(largest, fabs(g->backward[i])) : largest;
    for (int64_t i = 0; i < g->n; i++)
        g->before[i] = evaluation_weight(i + 1) * (largest > 0 ? largest : 1);
    if (g->n == 0 || x->grad_current) /* a tensor that is two inputs has it already */
        return true;
    x->grad = tensor_new("gradcheck", x->device, x->dtype, x->rank, x->dim);
    x->grad_current = x->grad != NULL;
    return x->grad && sb_tensor_write(x->grad, g->before);
}

/* Runs the second backward, which must add to existing gradients. */
static bool backward_again(struct check *c)
{
    for (int j = 0; j < c->n; j++)
        if (!fill_before(&c->gradient[j]))
            return false;
    if (!evaluation_backward(&c->evaluation, &c->evaluation.down))
        return false;
    for (int j = 0; j < c->n; j++) {
        struct gradient *g = &c->gradient[j];
        if (g->n > 0 && !sb_tensor_read(sb_tensor_grad(g->x), g->again))
            return false;
        for (int64_t i = 0; i < g->n; i++)
            g->again[i] -= g->before[i];
    }
    const struct evaluation *e = &c->evaluation;
    if (memcmp(e->up, e->down, (size_t)e->outputs * sizeof(double)) != 0)
        return sb_fail("the function returns different values for equal inputs; if it draws from "
                       "a random stream, pass that in the options");
    return true;
}

static double extrapolate(double whole, double half)
{
    return (4 * half - whole) / 3;
}

/* Richardson extrapolation cancels the error in h^2. */
static bool refine(struct check *c, struct gradient *g, int64_t i)
{
    struct difference half;
    if (!evaluation_difference(&c->evaluation, g->x, i, 0.5, &half))
        return false;
    g->difference[i] = extrapolate(g->difference[i], half.value);
    g->first[i] = extrapolate(g->first[i], half.first);
    g->last[i] = extrapolate(g->last[i], half.last);
    g->rounding[i] = (4 * half.rounding + g->rounding[i]) / 3;
    return true;
}

static double scale_of(const struct gradient *g)
{
    double scale = 0;
    for (int64_t i = 0; i < g->n; i++)
        scale = fmax(scale, fmax(fabs(g->backward[i]), fabs(g->difference[i])));
    return scale;
}

/* The error of element i of `values` against the difference, relative to the scale. */
static double error_at(const struct gradient *g, const double *values, int64_t i, double scale)
{
    double floor = g->rounding[i], off = fabs(values[i] - g->difference[i]);
    if (values == g->again) /* adding to an existing gradient rounds too */
        floor += 4 * DBL_EPSILON * g->before[i];
    return off <= floor ? 0 : (off - floor) / scale;
}

static bool differentiate(struct check *c, struct gradient *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        struct difference d;
        if (!evaluation_difference(&c->evaluation, g->x, i, 1, &d))
            return false;
        g->difference[i] = d.value;
        g->rounding[i] = d.rounding;
        g->first[i] = d.first;
        g->last[i] = d.last;
    }
    double scale = scale_of(g);
    for (int64_t i = 0; i < g->n; i++)
        if (error_at(g, g->backward, i, scale) > c->options.tolerance / 2 && !refine(c, g, i))
            return false;
    return true;
}

/* Stores the worst element of an input in the result if it is the worst so far. */
static void judge(const struct check *c, int input, sb_gradcheck_result *result)
{
    const struct gradient *g = &c->gradient[input];
    double scale = scale_of(g);
    for (int64_t i = 0; i < 2 * g->n; i++) {
        const double *values = i < g->n ? g->backward : g->again;
        int64_t index = i % g->n;
        double error = error_at(g, values, index, scale);
        if (result->input >= 0 && !(error > result->error) &&
            !(isnan(error) && !isnan(result->error)))
            continue;
        result->error = error;
        result->input = input;
        result->index = index;
        result->backward = values[index];
        result->difference = g->difference[index];
        result->step = evaluation_step(&c->evaluation, sb_tensor_get(g->x, index));
    }
}

static bool is_setting(const char *name, double value)
{
    return (value >= 0 && isfinite(value)) ||
           sb_fail("gradcheck: the %s is %g, not a positive number", name, value);
}

static bool is_input(const sb_tensor *x, int i)
{
    if (!x)
        return sb_fail("gradcheck: input %d is NULL", i);
    if (!tensor_readable("gradcheck", x))
        return false;
    if (x->tape != 0)
        return sb_fail("gradcheck: input %d, %s, is not a leaf", i, tensor_shape(x).text);
    if (x->requires_grad && x->dtype != SB_F64)
        return sb_fail("gradcheck: input %d, %s, is %s; differences need f64", i,
                       tensor_shape(x).text, sb_dtype_name(x->dtype));
    return replicas_may_write("gradcheck", i, x);
}

static bool are_inputs(sb_tensor *const x[], int n)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (!is_input(x[i], i))
            return false;
        any |= x[i]->requires_grad;
    }
    return any || sb_fail("gradcheck: none of the %d inputs requires a gradient", n);
}

static bool allocate(struct check *c)
{
    c->gradient = memory_new((size_t)c->n * sizeof *c->gradient);
    c->aside = memory_new((size_t)c->n * sizeof *c->aside);
    for (int j = 0; c->gradient && c->aside && j < c->n; j++) {
        struct gradient *g = &c->gradient[j];
        g->x = c->x[j];
        g->n = g->x->requires_grad ? tensor_size(g->x) : 0;
        double **array[ARRAYS] = {&g->backward, &g->before, &g->again, &g->difference,
                                  &g->rounding, &g->first,  &g->last};
        g->parts = memory_new((size_t)(ARRAYS * g->n) * sizeof(double));
        for (int k = 0; g->parts && k < ARRAYS; k++)
            *array[k] = g->parts + k * g->n;
        if (!g->parts)
            return sb_fail("out of memory for %s", tensor_shape(g->x).text);
    }
    return (c->gradient && c->aside) || sb_fail("out of memory for %d inputs", c->n);
}

static void set_aside(struct check *c)
{
    for (int j = 0; j < c->n; j++) {
        sb_tensor *x = c->x[j];
        c->aside[j] = (struct aside){x->grad, x->grad_current};
        x->grad = NULL;
        x->grad_current = false;
    }
}

/* From last to first: of a tensor that is two inputs, the first entry has the original gradient. */
static void put_back(struct check *c)
{
    for (int j = c->n - 1; j >= 0; j--) {
        sb_tensor *x = c->x[j];
        sb_tensor_release(x->grad);
        x->grad = c->aside[j].grad;
        x->grad_current = c->aside[j].current;
    }
    if (c->evaluation.random)
        *c->evaluation.random = c->evaluation.start;
}

/* Compares the elements of the inputs one by one: all, or those that `only` marks. */
static bool compare_elements(struct check *c, const bool *only, sb_gradcheck_result *result)
{
    for (int j = 0; j < c->n; j++)
        if ((!only || only[j]) && !differentiate(c, &c->gradient[j]))
            return false;
    for (int j = 0; j < c->n; j++)
        if (!only || only[j])
            judge(c, j, result);
    return true;
}

/* Finds the input, the element and the numbers that the result of a failed exact check names. */
static bool find_element(struct check *c, struct directions *d, sb_gradcheck_result *result)
{
    int64_t elements = 0;
    struct difference there;
    for (int j = 0; j < c->n; j++)
        elements += d->suspect[j] ? c->gradient[j].n : 0;
    if (elements <= MOST_ELEMENTS)
        return compare_elements(c, d->suspect, result);
    if (!directions_locate(d, &result->input, &result->index) ||
        !evaluation_difference(&c->evaluation, c->x[result->input], result->index, 1, &there))
        return false;
    result->backward = c->gradient[result->input].backward[result->index];
    result->difference = there.value;
    return true;
}

static bool compare_exactly(struct check *c, bool suspect[], sb_gradcheck_result *result)
{
    struct directions d = {.evaluation = &c->evaluation,
                           .x = c->x,
                           .gradient = c->gradient,
                           .n = c->n,
                           .count = c->options.directions,
                           .tolerance = c->options.tolerance,
                           .suspect = suspect};
    if (!directions_find_noise(&d) || !directions_compare(&d))
        return false;
    result->ok = d.error <= c->options.tolerance;
    result->error = d.error;
    result->backward = d.backward;
    result->difference = d.derivative;
    if (result->ok)
        return true;
    const bool found = find_element(c, &d, result);
    if (found && !(result->error > d.error) && !isnan(result->error))
        result->error = d.error;
    return found;
}

/* Exact where the function allows it or the caller wants it; sets the default tolerance. */
static void choose_method(struct check *c, sb_gradcheck_result *result)
{
    struct evaluation *e = &c->evaluation;
    e->exact = c->options.method == SB_GRADCHECK_EXACT ||
               (c->options.method == SB_GRADCHECK_AUTOMATIC && e->dual);
    result->method = e->exact ? SB_GRADCHECK_EXACT : SB_GRADCHECK_DIFFERENCES;
    if (!(c->options.tolerance > 0))
        c->options.tolerance = e->exact ? 1e-12 : 1e-6;
}

static bool compare(struct check *c, sb_gradcheck_result *result)
{
    if (!backward_afresh(c) || !backward_again(c))
        return false;
    choose_method(c, result);
    if (c->evaluation.exact) {
        bool *suspect = memory_new((size_t)c->n * sizeof *suspect);
        const bool ok = suspect ? compare_exactly(c, suspect, result)
                                : sb_fail("out of memory for %d inputs", c->n) != NULL;
        memory_free(suspect);
        if (!ok)
            return false;
    } else {
        if (!compare_elements(c, NULL, result))
            return false;
        result->ok = result->error <= c->options.tolerance;
    }
    if (!result->ok)
        mistake_name(&c->evaluation, c->gradient, c->n, result->input, c->options.tolerance,
                     result->mistake);
    if (c->options.second_order && !c->evaluation.exact)
        return sb_fail("second order needs dual numbers, which not all its operations compute");
    return !c->options.second_order || !result->ok ||
           second_order_compare(&c->evaluation, c->gradient, c->n, result);
}

static bool report(const struct check *c, sb_gradcheck_result *result)
{
    if (result->ok) {
        result->ok =
            !c->options.second_order || (result->symmetry <= 1e-11 && result->curvature <= 1e-6);
        return result->ok ||
               sb_fail(
                   "gradcheck: second order: <u, H v> and <v, H u> differ by %.2g, at most "
                   "1e-11 passes; H v and differences of gradients by %.2g, at most 1e-6 passes",
                   result->symmetry, result->curvature);
    }
    const char *mistake = result->mistake;
    const bool exact = result->method == SB_GRADCHECK_EXACT;
    return sb_fail("gradcheck: input %d, %s, element %lld: backward gives %.*g, the %s is %.*g: "
                   "error %.2g, more than %.2g%s%s",
                   result->input, tensor_shape(c->x[result->input]).text, (long long)result->index,
                   exact ? 16 : 9, result->backward, exact ? "exact derivative" : "difference",
                   exact ? 16 : 9, result->difference, result->error, c->options.tolerance,
                   mistake[0] ? "; " : "", mistake);
}

static bool are_settings(const sb_gradcheck_options *o)
{
    if (!is_setting("step", o->step) || !is_setting("tolerance", o->tolerance))
        return false;
    if ((int)o->method < SB_GRADCHECK_AUTOMATIC || (int)o->method > SB_GRADCHECK_DIFFERENCES)
        return sb_fail("gradcheck: %d is not a method", (int)o->method);
    return o->directions >= 0 ||
           sb_fail("gradcheck: directions is %d, not a positive number", o->directions);
}

static void discard(struct check *c)
{
    for (int j = 0; c->gradient && j < c->n; j++)
        memory_free(c->gradient[j].parts);
    memory_free(c->gradient);
    memory_free(c->aside);
    memory_free(c->evaluation.up);
}

bool sb_gradcheck(sb_function f, void *context, sb_tensor *const inputs[], int n,
                  const sb_gradcheck_options *options, sb_gradcheck_result *result)
{
    const sb_gradcheck_result not_run = {.error = NAN, .input = -1, .index = -1};
    const sb_gradcheck_options defaults = {0}, *o = options ? options : &defaults;
    sb_gradcheck_result unwanted;
    result = result ? result : &unwanted;
    *result = not_run;
    if (!f || !inputs)
        return fail_null("gradcheck", f ? "inputs" : "f");
    if (!are_settings(o) || !are_inputs(inputs, n))
        return false;
    sb_random *random = o->random ? o->random : tape_open() ? tape_open()->random : NULL;
    struct check c = {.x = inputs, .n = n, .options = *o};
    c.options.directions = o->directions > 0 ? o->directions : 4;
    c.evaluation = (struct evaluation){.f = f, .context = context, .x = inputs, .outputs = -1};
    c.evaluation.step = o->step > 0 ? o->step : 1e-5;
    c.evaluation.random = random;
    c.evaluation.start = random ? *random : (sb_random){0};
    bool ok = allocate(&c);
    if (ok) {
        set_aside(&c);
        result->error = 0;
        ok = compare(&c, result);
        put_back(&c);
    }
    if (ok) {
        ok = report(&c, result);
    } else {
        *result = not_run;
        sb_fail("gradcheck: %s", sb_error());
    }
    discard(&c);
    return ok;
}
