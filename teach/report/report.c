#include "teach/report/report.h"
#include "models/drawing_graph.h"
#include "teach/report/check.h"
#include "teach/report/curves.h"
#include "teach/report/details.h"
#include "teach/report/errors.h"
#include "teach/report/inside.h"
#include "teach/report/maps.h"
#include "teach/report/overview.h"
#include "teach/report/tabs.h"
#include "teach/report/tape.h"
#include "teach/report/zoom.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <stdio.h>

/* ---- the heads of an encoder-decoder ---- */

/* How many heads come before those of an attention: 0 the encoder's, 1 the decoder's, 2 cross. */
static int64_t first_head(const sb_transformer_options *o, int attention)
{
    const int layers = attention == 0   ? 0
                       : attention == 1 ? o->encoder_layers
                                        : o->encoder_layers + o->decoder_layers;
    return layers * o->heads;
}

static const char *head_name(const void *context, int64_t row)
{
    static const char *const kinds[] = {"encoder", "decoder", "cross"};
    static _Thread_local char text[64];
    const sb_transformer_options *o = context;
    int kind = 2;
    while (kind > 0 && row < first_head(o, kind))
        kind--;
    row -= first_head(o, kind);
    snprintf(text, sizeof text, "%s, layer %lld, head %lld", kinds[kind],
             (long long)(row / o->heads + 1), (long long)(row % o->heads + 1));
    return text;
}

static bool add_inside(struct html *html, const struct run_log *run, const struct subject *subject)
{
    const sb_transformer_options *o =
        &sb_seq2seq_options_of(subject->checkpoint->model)->transformer;
    return inside_add(html, run, subject->checkpoint->weights,
                      first_head(o, 2) + o->decoder_layers * o->heads, head_name, o);
}

static void add_facts(struct html *html, const struct subject *s)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(s->checkpoint->model)->transformer;
    html_print(
        html,
        "<p>%lld weights: width %lld, %lld heads, feed-forward %lld, %d encoder and %d decoder "
        "layers.</p>\n",
        (long long)sb_parameters_size(s->checkpoint->weights), (long long)o->width,
        (long long)o->heads, (long long)o->feed_forward, o->encoder_layers, o->decoder_layers);
}

static bool add_parts(struct html *html, const struct subject *s, const struct report_sources *from,
                      const struct errors *errors)
{
    const struct run_log *log = from->log;
    tabs_begin(html, "Curves");
    zoom_add(html);
    bool ok = curves_add(html, log, sb_vocabulary_size(sb_seq2seq_target(s->model)));
    tabs_next(html, "Attention");
    ok = ok && maps_add(html, s);
    tabs_next(html, "Gradients");
    ok = ok && add_inside(html, log, s);
    tabs_next(html, "Errors");
    ok = ok && errors_add(html, s, errors);
    tabs_next(html, "Check and tape");
    ok = ok && check_add(html, s) && tape_picture_add(html, s);
    tabs_next(html, "Details");
    ok = ok && details_add(html, s->checkpoint, from->data_hash, log->seconds);
    tabs_end(html);
    zoom_script(html);
    return ok;
}

char *report_page(const struct subject *subject, const char *title, const char *text,
                  const struct report_sources *from)
{
    struct html html = {0};
    struct errors errors;
    bool ok = errors_find(&errors, subject->model, from->pairs);
    html_begin(&html, title, drawing_svg_rules);
    overview_add(&html, subject, text, from->log);
    errors_summary(&html, &errors);
    add_facts(&html, subject);
    ok = ok && add_parts(&html, subject, from, &errors);
    errors_free(&errors);
    char *page = html_end(&html);
    if (ok)
        return page;
    memory_free(page);
    return NULL;
}
