#include "models/training/diagnosis.h"
#include "teach/report/report.h"
#include "tensor/error.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEW = 12 }; /* columns whose heads have room */
enum { PARTS = 9 };

/* What the names of a part's parameters contain, and its own name; the first that fits. */
static const char *const parts[PARTS][2] = {{"embedding", "embeddings"},
                                            {".query.", "queries"},
                                            {".key.bias", "biases of keys"},
                                            {".key.", "keys"},
                                            {".value.", "values"},
                                            {"attention.output", "attention's output"},
                                            {"feed_forward", "feed-forward"},
                                            {"norm", "norms"},
                                            {"", "output and others"}};

static bool is_of_part(const struct strip *s, int64_t parameter, int64_t part)
{
    int of = 0;
    while (!strstr(sb_parameters_name(s->weights, parameter), parts[of][0]))
        of++;
    return of == part;
}

static double value_of_row(const struct strip *s, int64_t row, int64_t column)
{
    return s->value ? s->value(s->run, row, column) : s->run->diagnosis[column].of[s->of][row];
}

/* The norm of all parameters of a part, or the share of all of their elements. */
static double part_value(const struct strip *s, int64_t part, int64_t column)
{
    double value = 0, size = 0;
    for (int64_t p = 0; p < s->rows; p++) {
        if (!is_of_part(s, p, part))
            continue;
        const double x = value_of_row(s, p, column),
                     n = (double)sb_tensor_size(sb_parameters_get(s->weights, p));
        value += s->logarithmic ? x * x : x * n;
        size += n;
    }
    return s->logarithmic ? sqrt(value) : value / fmax(size, 1);
}

/* NULL: the model lacks this part. */
static const char *part_name(const struct strip *s, int64_t part)
{
    int64_t p = 0;
    while (p < s->rows && !is_of_part(s, p, part))
        p++;
    return p < s->rows ? parts[part][1] : NULL;
}

/* ---- the table, whose rows may be parts ---- */

static double value_of(const struct strip *s, bool by_part, int64_t row, int64_t column)
{
    return by_part ? part_value(s, row, column) : value_of_row(s, row, column);
}

static const char *name_of(const struct strip *s, bool by_part, int64_t row)
{
    return by_part      ? part_name(s, row)
           : s->weights ? sb_parameters_name(s->weights, row)
                        : s->name(s->names, row);
}

static double largest_of(const struct strip *s, bool by_part)
{
    double largest = 0;
    for (int64_t row = 0; row < (by_part ? PARTS : s->rows); row++)
        for (int64_t column = 0; column < s->columns; column++)
            largest = fmax(largest, value_of(s, by_part, row, column));
    return largest;
}

static double shade(const struct strip *s, double value, double largest)
{
    if (!(value > 0) || !(largest > 0))
        return 0;
    return fmax(0, s->logarithmic ? 1 + log10(value / largest) / 4 : value / largest);
}

static void table(struct html *html, const struct strip *s, bool by_part)
{
    const double largest = largest_of(s, by_part);
    html_print(html, "<div class=\"shades strip%s\" tabindex=\"0\" style=\"--columns:%lld\">\n",
               s->columns > FEW ? " many" : "", (long long)s->columns);
    html_table(html, "", s->column_names ? "" : "step");
    for (int64_t c = 0; c < s->columns; c++)
        if (s->column_names)
            html_head(html, "col", s->column_names[c]);
        else
            html_say(html, "<th scope=\"col\">%.10g</th>", s->run->diagnosis[c].step);
    for (int64_t row = 0; row < (by_part ? PARTS : s->rows); row++) {
        const char *name = name_of(s, by_part, row);
        if (!name)
            continue;
        html_row(html, name);
        for (int64_t c = 0; c < s->columns; c++) {
            const double x = value_of(s, by_part, row, c);
            html_cell_shade(html, shade(s, x, largest), x);
        }
    }
    html_table_end(html);
    html_add(html, "</div>\n");
}

void strip_add(struct html *html, const struct strip *strip)
{
    struct strip s = *strip;
    if (!s.column_names)
        s.columns = s.run->diagnoses;
    if (s.weights)
        s.rows = sb_parameters_count(s.weights);
    const double largest = largest_of(&s, s.weights != NULL);
    html_say(html,
             "<h2>%s</h2>\n<p>%s Click for the numbers.</p>\n<p class=\"scale\">%.3g <span "
             "class=\"shade\">&#160;</span> %.3g</p>\n",
             s.title, s.text, s.logarithmic ? largest / 1e4 : 0, largest);
    table(html, &s, s.weights != NULL);
    if (!s.weights)
        return;
    html_add(html, "<details><summary>Each parameter</summary>\n");
    table(html, &s, false);
    html_add(html, "</details>\n");
}

/* ---- shares of the elements of gradients ---- */

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

/* The share of all elements; bins are rows, the largest first. */
static double share_of_all(const struct run_log *run, int64_t row, int64_t column)
{
    return share(run->diagnosis[column].of[RUN_HISTOGRAMS], run->parameters,
                 DIAGNOSIS_BINS - 1 - row);
}

/* The share of a parameter's elements at the last diagnosis; bins are columns. */
static double share_at_last(const struct run_log *run, int64_t parameter, int64_t bin)
{
    const double *counts = run->diagnosis[run->diagnoses - 1].of[RUN_HISTOGRAMS];
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

/* The name of head `row` of all maps. */
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

/* Frozen parameters have no gradient, of which no element is counted. */
static bool is_frozen(const struct strip *s, int64_t part)
{
    const double *counts = s->run->diagnosis[s->run->diagnoses - 1].of[RUN_HISTOGRAMS];
    double sum = 0;
    for (int64_t i = 0; i < s->rows * DIAGNOSIS_BINS; i++)
        sum += is_of_part(s, i / DIAGNOSIS_BINS, part) ? counts[i] : 0;
    return sum == 0;
}

/* Whether each part learns that is not frozen, at the last diagnosis; the biases of keys have no
   gradient in theory. */
static void add_health(struct html *html, const struct run_log *run, const sb_parameters *weights,
                       bool failed)
{
    enum { FAINT = 10000 };
    const struct strip s = {.run = run,
                            .weights = weights,
                            .of = RUN_GRADIENTS,
                            .rows = sb_parameters_count(weights),
                            .columns = run->diagnoses,
                            .logarithmic = true};
    const double most = largest_of(&s, true); /* of the run, as in the picture */
    double norm[PARTS], least = INFINITY;
    int faint = 0;
    for (int64_t p = 0; p < PARTS; p++) {
        const bool learns =
            part_name(&s, p) && !is_frozen(&s, p) && strcmp(parts[p][1], "biases of keys") != 0;
        norm[p] = learns ? part_value(&s, p, run->diagnoses - 1) : INFINITY;
        least = fmin(least, norm[p]);
    }
    if (isinf(least))
        return;
    html_say(html, least * FAINT > most
                       ? failed && saturated_at_end(run) > 0.5
                             ? "<p>At the end no part of the model is without gradients."
                             : "<p><strong>Gradients are healthy at the end:</strong> no part of "
                               "the model is without gradients."
                       : "<p><strong>Gradients are not healthy at the end:</strong> hardly any "
                         "gradient reaches ");
    for (int64_t p = 0; p < PARTS; p++)
        if (norm[p] * FAINT <= most)
            html_print(html, "%s%s", faint++ ? ", " : "", parts[p][1]);
    html_say(html,
             faint ? ". The smallest norm is %.2g, below a ten-thousandth of the largest in "
                     "training, %.2g.</p>\n"
                   : " The smallest norm is %.2g, the largest in training %.2g.</p>\n",
             least, most);
}

#define SATURATED                                                                                  \
    "The share of each head's rows whose softmax passes hardly any gradient: ||J|| < 0.01. "

static void add_strips(struct html *html, const struct run_log *run, const sb_parameters *weights,
                       const sb_example *example, bool failed)
{
    const struct strip strips[] = {
        {.title = "Gradients, by part of the model",
         .text = "Their norms on a few held-out texts. A lighter shade is a factor of 2.5 less; "
                 "below a ten-thousandth of the largest there is none. A part without any learns "
                 "nothing; that is right for the biases of keys alone, since softmax ignores what "
                 "all scores of a row share. A wrong gradient need not show here: "
                 "<code>softback explain wrong-gradient</code>, lesson 4.",
         .of = RUN_GRADIENTS,
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
         .text = failed ? SATURATED "In this model, which has learnt little, it is a fault: "
                                    "such rows pass hardly any gradient to queries and keys."
                        : SATURATED "In a trained model this is confidence, not a fault.",
         .of = RUN_SATURATED,
         .name = head_name,
         .rows = run->heads},
        {.title = "Evenness",
         .text = "The entropy of each head's rows, divided by that of equal weights.",
         .of = RUN_EVENNESS,
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
                const sb_example *example, bool failed)
{
    int64_t heads = 0;
    for (int i = 0; i < example->attentions; i++)
        heads += example->attention[i].layers * example->heads;
    if (run->diagnoses == 0) {
        html_add(html,
                 "<p>Gradients: the log holds none. <code>softback train --report FILE</code> "
                 "logs them at each evaluation.</p>\n");
        return true;
    }
    if (run->parameters != sb_parameters_count(weights) || run->heads != heads)
        return sb_fail("the log is of a model with %lld parameters and %lld heads; this model has "
                       "%lld and %lld",
                       (long long)run->parameters, (long long)run->heads,
                       (long long)sb_parameters_count(weights), (long long)heads);
    add_health(html, run, weights, failed);
    add_strips(html, run, weights, example, failed);
    return true;
}
