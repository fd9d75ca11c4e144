#include "teach/report/histograms.h"
#include "models/training/diagnosis.h"
#include "teach/report/strip.h"
#include "tensor/error.h"
#include "tensor/memory.h"

/* Of the largest elements first, as in the rows of a picture. */
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

static double total(const double counts[DIAGNOSIS_BINS])
{
    double sum = 0;
    for (int64_t bin = 0; bin < DIAGNOSIS_BINS; bin++)
        sum += counts[bin];
    return sum > 0 ? sum : 1;
}

/* The shares of all elements, the largest first. */
static void shares_of_all(const struct run_log *run, const double *counts, double *share)
{
    double sums[DIAGNOSIS_BINS] = {0};
    for (int64_t i = 0; i < run->parameters * DIAGNOSIS_BINS; i++)
        sums[i % DIAGNOSIS_BINS] += counts[i];
    for (int64_t bin = 0; bin < DIAGNOSIS_BINS; bin++)
        share[bin] = sums[DIAGNOSIS_BINS - 1 - bin] / total(sums);
}

static bool add_over_time(struct html *html, const struct run_log *run)
{
    double *steps = memory_new((size_t)run->diagnoses * sizeof *steps);
    const double **values = memory_new((size_t)run->diagnoses * sizeof *values);
    double *shares = memory_new((size_t)(run->diagnoses * DIAGNOSIS_BINS) * sizeof *shares);
    const bool ok = (steps && values && shares) || sb_fail("out of memory for histograms");
    for (int64_t i = 0; ok && i < run->diagnoses; i++) {
        double *share = shares + i * DIAGNOSIS_BINS;
        shares_of_all(run, run->diagnosis[i].histograms, share);
        values[i] = share;
        steps[i] = run->diagnosis[i].step;
    }
    if (ok)
        strip_add(html, &(struct strip){.title = "How large the elements of gradients are",
                                        .text = "The share of all elements with an absolute value "
                                                "of this size, on a few held-out texts.",
                                        .rows = DIAGNOSIS_BINS,
                                        .columns = run->diagnoses,
                                        .steps = steps,
                                        .values = values,
                                        .name = size_name});
    memory_free(steps);
    memory_free(values);
    memory_free(shares);
    return ok;
}

/* A row for each parameter: the shares of its own elements. */
static bool add_of_parameters(struct html *html, const struct run_log *run, const double *counts,
                              const sb_parameters *weights)
{
    static const char *const sizes[DIAGNOSIS_BINS] = {
        "0", "<10⁻⁸", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"};
    const double *values[DIAGNOSIS_BINS];
    double *shares = memory_new((size_t)(run->parameters * DIAGNOSIS_BINS) * sizeof *shares);
    if (!shares)
        return sb_fail("out of memory for histograms");
    for (int64_t bin = 0; bin < DIAGNOSIS_BINS; bin++) {
        values[bin] = shares + bin * run->parameters;
        for (int64_t i = 0; i < run->parameters; i++)
            shares[bin * run->parameters + i] =
                counts[i * DIAGNOSIS_BINS + bin] / total(counts + i * DIAGNOSIS_BINS);
    }
    const bool ok = strip_add_parts(
        html,
        &(struct strip){.title = "The elements of gradients, by part of the model",
                        .text = "At the last evaluation: the share of elements with an absolute "
                                "value from this number up to the next.",
                        .rows = run->parameters,
                        .columns = DIAGNOSIS_BINS,
                        .columns_named = sizes,
                        .values = values},
        weights);
    memory_free(shares);
    return ok;
}

bool histograms_add(struct html *html, const struct run_log *run, const sb_parameters *weights)
{
    const int64_t n = run->diagnoses;
    return n == 0 || (add_over_time(html, run) &&
                      add_of_parameters(html, run, run->diagnosis[n - 1].histograms, weights));
}
