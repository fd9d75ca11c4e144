#include "teach/report/inside.h"
#include "teach/report/histograms.h"
#include "teach/report/strip.h"
#include "tensor/error.h"
#include "tensor/memory.h"

enum inside { GRADIENTS, SATURATED, EVENNESS };

/* Rows are parameters where `weights` are given. */
static bool add_strip(struct html *html, const struct run_log *run, enum inside what,
                      struct strip strip, const sb_parameters *weights)
{
    const int64_t n = run->diagnoses;
    double *steps = memory_new((size_t)(n + 1) * sizeof *steps);
    const double **values = memory_new((size_t)(n + 1) * sizeof *values);
    for (int64_t i = 0; steps && values && i < n; i++) {
        const struct run_diagnosis *d = &run->diagnosis[i];
        steps[i] = d->step;
        values[i] = what == GRADIENTS   ? d->gradients
                    : what == SATURATED ? d->saturated
                                        : d->evenness;
    }
    bool ok = (steps && values) || sb_fail("out of memory for the log");
    strip.columns = n;
    strip.steps = steps;
    strip.values = values;
    if (ok && weights)
        ok = strip_add_parts(html, &strip, weights);
    else if (ok)
        strip_add(html, &strip);
    memory_free(steps);
    memory_free(values);
    return ok;
}

bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                int64_t heads, const char *(*head_name)(const void *context, int64_t row),
                const void *context)
{
    if (run->diagnoses > 0 &&
        (run->parameters != sb_parameters_count(weights) || run->heads != heads))
        return sb_fail("the log is of a model with %lld parameters and %lld heads; this model has "
                       "%lld and %lld",
                       (long long)run->parameters, (long long)run->heads,
                       (long long)sb_parameters_count(weights), (long long)heads);
    if (run->diagnoses == 0)
        html_add(html, "<h2>Gradients</h2>\n<p>The log holds none. <code>softback train "
                       "--report FILE</code> logs them at each evaluation, and "
                       "<code>--evaluate-every N</code> says how often that is.</p>\n");
    return add_strip(html, run, GRADIENTS,
                     (struct strip){
                         .title = "Gradients, by part of the model",
                         .text = "Their norms on a few held-out texts. A lighter shade is a factor "
                                 "of 2.5 less; below a ten-thousandth of the largest there is "
                                 "none. A part without any learns nothing; that is right for the "
                                 "biases of keys alone, since softmax ignores what all scores of a "
                                 "row share.",
                         .rows = run->parameters,
                         .logarithmic = true},
                     weights) &&
           histograms_add(html, run, weights) &&
           add_strip(html, run, SATURATED,
                     (struct strip){.title = "Saturated rows",
                                    .text =
                                        "The share of each head's rows whose softmax passes hardly "
                                        "any gradient: ||J|| < 0.01. In a trained model this is "
                                        "confidence, not a fault.",
                                    .rows = run->heads,
                                    .name = head_name,
                                    .context = context},
                     NULL) &&
           add_strip(html, run, EVENNESS,
                     (struct strip){.title = "Evenness",
                                    .text =
                                        "The entropy of each head's rows, divided by that of equal "
                                        "weights.",
                                    .rows = run->heads,
                                    .name = head_name,
                                    .context = context},
                     NULL);
}
