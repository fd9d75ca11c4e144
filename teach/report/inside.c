#include "teach/report/inside.h"
#include "models/training/diagnosis.h"
#include "teach/report/strip.h"
#include "tensor/error.h"

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

static const char *size_name(const void *unused, int64_t row)
{
    static const char *const names[DIAGNOSIS_BINS] = {"1 and more",
                                                      "0.1 to 1",
                                                      "0.01 to 0.1",
                                                      "0.001 to 0.01",
                                                      "10⁻⁴ to 0.001",
                                                      "10⁻⁵ to 10⁻⁴",
                                                      "10⁻⁶ to 10⁻⁵",
                                                      "10⁻⁷ to 10⁻⁶",
                                                      "10⁻⁸ to 10⁻⁷",
                                                      "below 10⁻⁸",
                                                      "0"};
    (void)unused;
    return names[row];
}

/* ---- the strips ---- */

static void add_strips(struct html *html, const struct run_log *run, const sb_parameters *weights,
                       const char *(*head_name)(const void *context, int64_t row),
                       const void *context)
{
    static const char *const sizes[DIAGNOSIS_BINS] = {
        "0", "<10⁻⁸", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"};
    const struct strip strips[] = {
        {.title = "Gradients, by part of the model",
         .text = "Their norms on a few held-out texts. A lighter shade is a factor of 2.5 less; "
                 "below a ten-thousandth of the largest there is none. A part without any learns "
                 "nothing; that is right for the biases of keys alone, since softmax ignores what "
                 "all scores of a row share.",
         .value = gradient,
         .weights = weights,
         .logarithmic = true},
        {.title = "How large the elements of gradients are",
         .text = "The share of all elements with an absolute value of this size, on a few held-out "
                 "texts.",
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
        strip.names = context;
        strip_add(html, &strip);
    }
}

bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                int64_t heads, const char *(*head_name)(const void *context, int64_t row),
                const void *context)
{
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
    add_strips(html, run, weights, head_name, context);
    return true;
}
