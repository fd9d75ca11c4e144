#include "teach/report/report.h"
#include "models/drawing_graph.h"
#include "teach/report/chart.h"
#include "teach/report/check.h"
#include "teach/report/curves.h"
#include "teach/report/details.h"
#include "teach/report/inside.h"
#include "teach/report/maps.h"
#include "teach/report/tape.h"
#include "tensor/memory.h"
#include <stdio.h>

/* ---- parts, which the script turns into tabs ---- */

static const char script[] = {
#include "tabs.inc"
    0};

static void part_begin(struct html *html, const char *name)
{
    html_print(html, "<section class=\"part\" data-name=\"%s\" aria-label=\"%s\">\n", name, name);
}

static void tabs_begin(struct html *html, const char *name)
{
    html_add(html, "<nav id=\"tabs\" aria-label=\"Parts\" hidden></nav>\n");
    part_begin(html, name);
}

static void tabs_next(struct html *html, const char *name)
{
    html_add(html, "</section>\n");
    part_begin(html, name);
}

static void tabs_end(struct html *html)
{
    html_add(html, "</section>\n");
    html_script(html, script);
}

/* The name of head `row` of all maps of the model. */
static const char *head_name(const void *context, int64_t row)
{
    static _Thread_local char text[64];
    const sb_example *e = context;
    const sb_example_attention *at = e->attention;
    const int map = (int)(row / e->heads);
    while (map < at->first || map >= at->first + at->layers)
        at++;
    snprintf(text, sizeof text, "%s%slayer %d, head %lld", e->attentions > 1 ? at->name : "",
             e->attentions > 1 ? ", " : "", map - at->first + 1, (long long)(row % e->heads + 1));
    return text;
}

static bool add_inside(struct html *html, const struct report *r)
{
    const sb_example *e = &r->subject->example;
    int64_t maps = 0;
    for (int i = 0; i < e->attentions; i++)
        maps += e->attention[i].layers;
    return inside_add(html, r->log, r->checkpoint->weights, maps * e->heads, head_name, e);
}

/* A text that the report took by itself, or that the model wrote, may be too long to be drawn. */
static bool add_maps(struct html *html, const struct report *r)
{
    const sb_example_attention *at = subject_attention(r->subject, NULL);
    const bool text = maps_have_room(&at->keys), target = at->self || maps_have_room(&at->queries);
    if ((text && target) || (!text && r->text_given) || (!target && r->target_given))
        return maps_add(html, r->subject);
    html_print(
        html,
        "<h2>Attention</h2>\n<p>Not drawn: the text has %lld symbols and its output %lld, "
        "which is too long for a page. <code>softback report MODEL --input TEXT</code> draws "
        "another text, and <code>--target TEXT</code> another output.</p>\n",
        (long long)at->keys.length, (long long)at->queries.length);
    return true;
}

static bool add_parts(struct html *html, const struct report *r, const struct report_kind *kind,
                      void *found)
{
    tabs_begin(html, "Curves");
    chart_controls(html);
    bool ok = curves_add(html, r->log, r->subject->example.choices);
    ok = ok && (!kind->curves || kind->curves(html, r));
    tabs_next(html, "Attention");
    ok = ok && add_maps(html, r);
    tabs_next(html, "Gradients");
    ok = ok && add_inside(html, r);
    if (kind->errors) {
        tabs_next(html, "Errors");
        ok = ok && kind->errors(html, r, found);
    }
    tabs_next(html, "Check and tape");
    ok = ok && check_add(html, r->subject) && tape_picture_add(html, r->subject);
    tabs_next(html, "Details");
    ok = ok && details_add(html, r->checkpoint, r->data_hash, r->log->seconds);
    tabs_end(html);
    chart_script(html);
    return ok;
}

char *report_page(const struct report *r, const struct report_kind *kind)
{
    static const struct report_kind other = {.open = NULL};
    struct html html = {0};
    kind = kind ? kind : &other;
    void *found = kind->open ? kind->open(r) : NULL;
    html_begin(&html, r->title, drawing_svg_rules);
    const bool ok = (found || !kind->open) && (!kind->begin || kind->begin(&html, r, found)) &&
                    add_parts(&html, r, kind, found);
    if (found)
        kind->close(found);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
