#include "teach/report/strip.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

enum { FEW = 12 }; /* columns whose heads have room */

static double largest_of(const struct strip *s)
{
    double largest = 0;
    for (int64_t c = 0; c < s->columns; c++)
        for (int64_t r = 0; r < s->rows; r++)
            largest = fmax(largest, s->values[c][r]);
    return largest;
}

static double shade(const struct strip *s, double value, double largest)
{
    if (!(value > 0) || !(largest > 0))
        return 0;
    return fmax(0, s->logarithmic ? 1 + log10(value / largest) / 4 : value / largest);
}

static void head(struct html *html, const struct strip *s)
{
    html_add(html,
             s->columns_named ? "<tr><th scope=\"col\"></th>" : "<tr><th scope=\"col\">step</th>");
    for (int64_t c = 0; c < s->columns; c++)
        if (s->columns_named)
            html_head(html, "col", s->columns_named[c]);
        else
            html_say(html, "<th scope=\"col\">%.10g</th>", s->steps[c]);
    html_add(html, "</tr>\n");
}

static void table(struct html *html, const struct strip *s, double largest)
{
    html_print(html,
               "<div class=\"wide shades\" tabindex=\"0\" style=\"--columns:%lld\">\n"
               "<table class=\"strip%s\">\n",
               (long long)s->columns, s->columns > FEW ? " many" : "");
    head(html, s);
    for (int64_t r = 0; r < s->rows; r++) {
        html_add(html, "<tr>");
        html_head(html, "row", s->name(s->context, r));
        for (int64_t c = 0; c < s->columns; c++)
            html_shade(html, shade(s, s->values[c][r], largest), s->values[c][r]);
        html_add(html, "</tr>\n");
    }
    html_add(html, "</table></div>\n");
}

void strip_add(struct html *html, const struct strip *s)
{
    if (s->columns == 0 || s->rows == 0)
        return;
    const double largest = largest_of(s);
    html_say(html, "<h2>%s</h2>\n<p>%s The strongest shade is %.3g. Click for the numbers.</p>\n",
             s->title, s->text, largest);
    table(html, s, largest);
}

/* ---- parts of a model ---- */

enum { PARTS = 9 };

/* What the names of its parameters contain, and its own name; the first that fits. */
static const char *const parts[PARTS][2] = {{"embedding", "embeddings"},
                                            {".query.", "queries"},
                                            {".key.bias", "biases of keys"},
                                            {".key.", "keys"},
                                            {".value.", "values"},
                                            {"attention.output", "attention's output"},
                                            {"feed_forward", "feed-forward"},
                                            {"norm", "norms"},
                                            {"", "output and others"}};

static int part_of(const char *name)
{
    int part = 0;
    while (!strstr(name, parts[part][0]))
        part++;
    return part;
}

static const char *part_name(const void *present, int64_t row)
{
    return parts[((const int *)present)[row]][1];
}

static const char *parameter_name(const void *set, int64_t row)
{
    return sb_parameters_name(set, row);
}

/* The values of a column by parts: the norm of all, or the share of all elements. */
static void combine(const struct strip *s, const sb_parameters *weights, int64_t column,
                    double value[PARTS])
{
    double size[PARTS] = {0};
    for (int64_t p = 0; p < s->rows; p++) {
        const double x = s->values[column][p],
                     n = (double)sb_tensor_size(sb_parameters_get(weights, p));
        const int part = part_of(sb_parameters_name(weights, p));
        value[part] += s->logarithmic ? x * x : x * n;
        size[part] += n;
    }
    for (int part = 0; part < PARTS; part++)
        value[part] = s->logarithmic ? sqrt(value[part]) : value[part] / fmax(size[part], 1);
}

/* The parts that a model has; their number. */
static int present_parts(const struct strip *s, const sb_parameters *weights, int present[PARTS])
{
    bool has[PARTS] = {false};
    int n = 0;
    for (int64_t p = 0; p < s->rows; p++)
        has[part_of(sb_parameters_name(weights, p))] = true;
    for (int part = 0; part < PARTS; part++)
        if (has[part])
            present[n++] = part;
    return n;
}

bool strip_add_parts(struct html *html, const struct strip *s, const sb_parameters *weights)
{
    if (s->columns == 0 || s->rows == 0)
        return true;
    int present[PARTS];
    struct strip of_parts = *s, of_parameters = *s;
    double *all = memory_new((size_t)(s->columns * PARTS) * sizeof *all);
    const double **values = memory_new((size_t)s->columns * sizeof *values);
    const bool ok = (all && values) || sb_fail("out of memory for the log");
    of_parts.rows = present_parts(s, weights, present);
    for (int64_t c = 0; ok && c < s->columns; c++) {
        double value[PARTS] = {0};
        combine(s, weights, c, value);
        for (int64_t row = 0; row < of_parts.rows; row++)
            all[c * PARTS + row] = value[present[row]];
        values[c] = all + c * PARTS;
    }
    if (ok) {
        of_parts.values = values;
        of_parts.name = part_name;
        of_parts.context = present;
        of_parameters.name = parameter_name;
        of_parameters.context = weights;
        strip_add(html, &of_parts);
        html_add(html, "<details><summary>Each parameter</summary>\n");
        table(html, &of_parameters, largest_of(s));
        html_add(html, "</details>\n");
    }
    memory_free(all);
    memory_free(values);
    return ok;
}
