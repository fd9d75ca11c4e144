#include "teach/report/report.h"
#include "models/drawing_graph.h"
#include "models/text_model.h"
#include "teach/report/chart.h"
#include "teach/report/check.h"
#include "teach/report/curves.h"
#include "teach/report/details.h"
#include "teach/report/inside.h"
#include "teach/report/maps.h"
#include "teach/report/tape.h"
#include "tensor/memory.h"

/* ---- parts, which the script turns into tabs ---- */

static const char script[] = {
#include "tabs.js.inc"
    0};

void report_part(struct html *html, const char *name)
{
    html_print(html, "</section>\n<section class=\"part\" data-name=\"%s\" aria-label=\"%s\">\n",
               name, name);
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

static void add_model(struct html *html, const struct report *r, const struct report_kind *kind)
{
    const struct text_model *model = r->subject->model.self;
    const sb_transformer_options *o = &model->options.common.transformer;
    html_say(html, "<p>%s with %lld parameters: width %lld, heads %lld, feed-forward %lld",
             kind->title, (long long)sb_parameters_size(r->checkpoint->weights),
             (long long)o->width, (long long)o->heads, (long long)o->feed_forward);
    if (model->encoder)
        html_say(html, ", encoder layers %d", o->encoder_layers);
    if (model->decoder)
        html_say(html, ", decoder layers %d", o->decoder_layers);
    html_say(html, ", %s %lld.</p>\n", kind->outputs, (long long)r->subject->example.choices);
}

static bool add_all(struct html *html, const struct report *r, const struct report_kind *kind,
                    void *found)
{
    bool ok = !kind->find || kind->find(found, r);
    ok = ok && (!kind->begin || kind->begin(html, r, found));
    html_add(html, "<nav id=\"tabs\" aria-label=\"Parts\" hidden></nav>\n<section class=\"part\" "
                   "data-name=\"Curves\" aria-label=\"Curves\">\n");
    chart_controls(html);
    curves_add(html, r->log, r->subject->example.choices);
    if (kind->curves)
        kind->curves(html, r);
    chart_note(html);
    report_part(html, "Attention");
    ok = ok && add_maps(html, r);
    report_part(html, "Gradients");
    ok = ok && inside_add(html, r->log, r->checkpoint->weights, &r->subject->example) &&
         (!kind->errors || kind->errors(html, r, found));
    report_part(html, "Check and tape");
    ok = ok && check_add(html, r->subject) && tape_picture_add(html, r->subject);
    report_part(html, "Details");
    if (kind->title)
        add_model(html, r, kind);
    ok = ok && details_add(html, r->checkpoint, r->data_hash, r->log->seconds);
    html_add(html, "</section>\n");
    html_script(html, script);
    chart_script(html);
    return ok;
}

char *report_page(const struct report *r, const struct report_kind *kind)
{
    static const struct report_kind other = {.title = NULL};
    kind = kind ? kind : &other;
    struct html html = {0};
    void *found = memory_new(kind->size + 1);
    html_begin(&html, r->title, drawing_svg_rules);
    const bool ok =
        found ? add_all(&html, r, kind, found) : sb_fail("report: out of memory") != NULL;
    if (found && kind->forget)
        kind->forget(found);
    memory_free(found);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
