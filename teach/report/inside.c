#include "teach/report/inside.h"
#include "models/training/diagnosis.h"
#include "teach/report/strip.h"
#include "tensor/error.h"
#include <stdio.h>

/* ---- the values of strips ---- */

static double gradient(const struct run_log *run, int64_t parameter, int64_t column)
{
    return run->diagnosis[column].gradients[parameter];
}

static double saturated(const struct run_log *run, int64_t head, int64_t column)
{
    return run->diagnosis[column].saturated[head];
}

static double evenness(const struct run_log *run, int64_t head, int64_t column)
{
    return run->diagnosis[column].evenness[head];
}

/* The share of one bin in the histograms of n parameters. */
static double share(const double *counts, int64_t n, int64_t bin)
{
    double sum = 0, here = 0;
    for (int64_t i = 0; i < n * DIAGNOSIS_BINS; i++) {
        sum += counts[i];
        here += i % DIAGNOSIS_BINS == bin ? counts[i] : 0;
    }
    return sum > 0 ? here / sum : 0;
}

/* Of all elements, the largest first, as in the rows of a picture. */
static double share_of_all(const struct run_log *run, int64_t row, int64_t column)
{
    return share(run->diagnosis[column].histograms, run->parameters, DIAGNOSIS_BINS - 1 - row);
}

/* Of a parameter's elements at the last diagnosis. */
static double share_at_last(const struct run_log *run, int64_t parameter, int64_t bin)
{
    const double *counts = run->diagnosis[run->diagnoses - 1].histograms;
    return share(counts + parameter * DIAGNOSIS_BINS, 1, bin);
}

/* Absolute values from this number up to the next. */
static const char *const sizes[DIAGNOSIS_BINS] = {"0",    "<10⁻⁸", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵",
                                                  "10⁻⁴", "0.001", "0.01", "0.1",  "1"};

static const char *size_name(const void *unused, int64_t row)
{
    (void)unused;
    return sizes[DIAGNOSIS_BINS - 1 - row];
}

/* Of head `row` of all maps. */
static const char *head_name(const void *example, int64_t row)
{
    static _Thread_local char text[64];
    const sb_example *e = example;
    const sb_example_attention *at = e->attention;
    const int map = (int)(row / e->heads);
    while (map < at->first || map >= at->first + at->layers)
        at++;
    snprintf(text, sizeof text, "%s%slayer %d, head %lld", e->attentions > 1 ? at->name : "",
             e->attentions > 1 ? ", " : "", map - at->first + 1, (long long)(row % e->heads + 1));
    return text;
}

/* ---- the strips ---- */

static void add_strips(struct html *html, const struct run_log *run, const sb_parameters *weights,
                       const sb_example *example)
{
    const struct strip strips[] = {
        {.title = "Gradients, by part of the model",
         .text = "Their norms on a few held-out texts. A lighter shade is a factor of 2.5 less; "
                 "below a ten-thousandth of the largest there is none. A part without any learns "
                 "nothing; that is right for the biases of keys alone, since softmax ignores what "
                 "all scores of a row share. A wrong gradient need not show here: "
                 "<code>softback explain wrong-gradient</code>, lesson 4.",
         .value = gradient,
         .weights = weights,
         .logarithmic = true},
        {.title = "How large the elements of gradients are",
         .text =
             "The share of all elements with an absolute value from this number up to the next, "
             "on a few held-out texts.",
         .value = share_of_all,
         .name = size_name,
         .rows = DIAGNOSIS_BINS},
        {.title = "The elements of gradients, by part of the model",
         .text = "At the last evaluation: the share of elements with an absolute value from this "
                 "number up to the next.",
         .value = share_at_last,
         .weights = weights,
         .column_names = sizes,
         .columns = DIAGNOSIS_BINS},
        {.title = "Saturated rows",
         .text = "The share of each head's rows whose softmax passes hardly any gradient: ||J|| < "
                 "0.01. In a trained model this is confidence, not a fault.",
         .value = saturated,
         .name = head_name,
         .rows = run->heads},
        {.title = "Evenness",
         .text = "The entropy of each head's rows, divided by that of equal weights.",
         .value = evenness,
         .name = head_name,
         .rows = run->heads}};
    for (size_t i = 0; i < sizeof strips / sizeof *strips; i++) {
        struct strip strip = strips[i];
        strip.run = run;
        strip.names = example;
        strip_add(html, &strip);
    }
}

bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                const sb_example *example)
{
    int64_t heads = 0;
    for (int i = 0; i < example->attentions; i++)
        heads += example->attention[i].layers * example->heads;
    if (run->diagnoses == 0) {
        html_add(html, "<h2>Gradients</h2>\n<p>The log holds none. <code>softback train "
                       "--report FILE</code> logs them at each evaluation, and "
                       "<code>--evaluate-every N</code> says how often that is.</p>\n");
        return true;
    }
    if (run->parameters != sb_parameters_count(weights) || run->heads != heads)
        return sb_fail("the log is of a model with %lld parameters and %lld heads; this model has "
                       "%lld and %lld",
                       (long long)run->parameters, (long long)run->heads,
                       (long long)sb_parameters_count(weights), (long long)heads);
    add_strips(html, run, weights, example);
    return true;
}
