#include "program/commands/explain_model.h"
#include "models/training/checkpoint.h"
#include "program/options/options.h"
#include "program/screen/terminal.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void options_of_stored_model(struct options *o, struct model_request *r)
{
    struct stored_twin_request *stored = &r->stored;
    struct model_place *place = &r->place;
    o->kind = OF_FILE;
    option_text(o, "model", "FILE", &stored->path, "attention, hessian, tape: the model file");
    o->kind = OF_TEXT;
    option_text(o, "input", "TEXT", &r->text, "attention, tape: the source text");
    option_text(o, "target", "TEXT", &r->target, "target text [the model's output]");
    o->kind = OF_PLACE;
    option_attention(o, &place->attention, "attention: cross, encoder or decoder [cross]");
    option_count(o, "layer", &place->layer, 1, 1000, "attention: its layer, from 1 [the last]");
    option_count(o, "head", &place->head, 1, 1 << 16, "attention: its head, from 1 [1]");
    option_count(o, "row", &place->row, 1, 1 << 16, "attention: the row, from 1 [1]");
    o->kind = OF_DRAWING;
    option_flag(o, "dot", &r->dot, "tape: print Graphviz instead of SVG");
    o->kind = OF_BATCH;
    option_text(o, "data", "FILE", &stored->data, "hessian: pairs, lines of source, tab, target");
    option_task(o, &stored->task, NULL, "hessian: held-out pairs of a built-in task");
    option_count(o, "count", &stored->count, 1, 1 << 16, "hessian: number of pairs [16]");
    o->kind = 0;
}

/* Frees the page. */
static char *explain_page_text(struct page *page, bool json)
{
    char *text = NULL;
    if (page)
        text = json ? page_as_json(page) : page_as_text(page, terminal_has_colour(STDOUT_FILENO));
    page_free(page);
    return text;
}

static char *explain_of_text(const char *topic, const struct model_request *r, bool json)
{
    struct checkpoint *c = checkpoint_open(r->stored.path, NULL);
    struct subject subject = {0};
    char *text = NULL;
    if (c && subject_begin(&subject, &c->subject, r->text, r->target))
        text = strcmp(topic, "tape") == 0
                   ? model_tape(&subject, r->dot ? drawing_dot : drawing_svg)
                   : explain_page_text(model_row_page(&subject, &r->place), json);
    subject_end(&subject);
    checkpoint_free(c);
    return text;
}

static char *explain_of_batch(const struct model_request *r, bool json)
{
    struct stored_twin stored;
    struct stored_twin_request request = r->stored;
    request.count = request.count > 0 ? request.count : 16;
    const bool waits = isatty(STDERR_FILENO);
    fputs(waits ? "products with the Hessian take some seconds ..." : "", stderr);
    char *text = stored_twin_open(&stored, &request)
                     ? explain_page_text(model_hessian_page(&stored.twin), json)
                     : NULL;
    fputs(waits ? "\r\033[K" : "", stderr);
    stored_twin_close(&stored);
    return text;
}

static int explain_check(const struct options *o, const char *topic, const struct model_request *r,
                         bool json)
{
    const bool tape = strcmp(topic, "tape") == 0, hessian = strcmp(topic, "hessian") == 0,
               attention = strcmp(topic, "attention") == 0;
    const char *other = options_given(o, hessian             ? OF_TEXT | OF_PLACE | OF_DRAWING
                                         : tape || attention ? OF_BATCH
                                                             : OF_MODEL);
    if (other)
        return command_misused("explain", "--%s is not an option of %s", other, topic);
    if (hessian && (!r->stored.path || !r->stored.data == !r->stored.task))
        return command_misused("explain",
                               "give --model FILE and either --data FILE or --task NAME");
    if (hessian)
        return -1;
    if (!r->stored.path || !r->text)
        return command_misused("explain", "give both --model FILE and --input TEXT");
    if (tape && (options_given(o, OF_PLACE) || json))
        return command_misused("explain", "tape does not take %s",
                               json ? "--json" : "--kind, --layer, --head or --row");
    if (!tape && r->dot)
        return command_misused("explain", "--dot is not an option of attention");
    return -1;
}

int explain_model(const struct options *o, const char *topic, const struct model_request *r,
                  bool json)
{
    const int wrong = explain_check(o, topic, r, json);
    if (wrong >= 0)
        return wrong;
    char *text =
        strcmp(topic, "hessian") == 0 ? explain_of_batch(r, json) : explain_of_text(topic, r, json);
    if (text)
        fputs(text, stdout);
    memory_free(text);
    return text ? EXIT_OK : command_failed("explain");
}
