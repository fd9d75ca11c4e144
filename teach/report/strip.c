#include "teach/report/strip.h"
#include <math.h>
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

/* The norm of all parameters of a part, or the share of all of their elements. */
static double part_value(const struct strip *s, int64_t part, int64_t column)
{
    double value = 0, size = 0;
    for (int64_t p = 0; p < s->rows; p++) {
        if (!is_of_part(s, p, part))
            continue;
        const double x = s->value(s->run, p, column),
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
    return by_part ? part_value(s, row, column) : s->value(s->run, row, column);
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
             "<h2>%s</h2>\n<p>%s %.3g <span class=\"shade\">&#160;</span> %.3g. Click for the "
             "numbers.</p>\n",
             s.title, s.text, s.logarithmic ? largest / 1e4 : 0, largest);
    table(html, &s, s.weights != NULL);
    if (!s.weights)
        return;
    html_add(html, "<details><summary>Each parameter</summary>\n");
    table(html, &s, false);
    html_add(html, "</details>\n");
}
