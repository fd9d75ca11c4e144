#include "program/commands/explain_model.h"
#include "models/training/checkpoint.h"
#include "program/screen/command.h"
#include "program/screen/options.h"
#include "program/screen/terminal.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

error_t explain_model_option(int key, char *argument, struct argp_state *state,
                             struct model_request *r)
{
    static const char *const names[] = {"model", "input", "translation", "kind", "layer", "head",
                                        "row",   "dot",   "data",        "task", "count"};
    if (key < KEY_MODEL || key > KEY_COUNT)
        return ARGP_ERR_UNKNOWN;
    r->given = names[key - KEY_MODEL];
    r->placed |= key >= KEY_KIND && key <= KEY_ROW;
    r->texts |= key == KEY_INPUT || key == KEY_TRANSLATION;
    r->batch |= key >= KEY_DATA;
    switch (key) {
    case KEY_MODEL:
        r->stored.path = argument;
        break;
    case KEY_INPUT:
        r->text = argument;
        break;
    case KEY_TRANSLATION:
        r->target = argument;
        break;
    case KEY_KIND:
        r->place.attention = options_attention(state, argument);
        break;
    case KEY_LAYER:
        r->place.layer = options_count(state, "layer", argument, 1, 1000);
        break;
    case KEY_HEAD:
        r->place.head = options_count(state, "head", argument, 1, 1 << 16);
        break;
    case KEY_ROW:
        r->place.row = options_count(state, "row", argument, 1, 1 << 16);
        break;
    case KEY_DATA:
        r->stored.data = argument;
        break;
    case KEY_TASK:
        r->stored.task = options_task(state, argument);
        break;
    case KEY_COUNT:
        r->stored.count = options_count(state, "count", argument, 1, 1 << 16);
        break;
    default:
        r->dot = true;
    }
    return 0;
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

static int explain_check(const char *topic, const struct model_request *r, bool json)
{
    const bool tape = strcmp(topic, "tape") == 0, hessian = strcmp(topic, "hessian") == 0;
    const bool of_text = r->texts || r->placed || r->dot;
    if ((!tape && !hessian && strcmp(topic, "attention") != 0) || (hessian ? of_text : r->batch))
        return command_misused("explain", "--%s is not an option of %s", r->given, topic);
    if (hessian && (!r->stored.path || !r->stored.data == !r->stored.task))
        return command_misused("explain",
                               "give --model FILE and either --data FILE or --task NAME");
    if (hessian)
        return -1;
    if (!r->stored.path || !r->text)
        return command_misused("explain", "give both --model FILE and --input TEXT");
    if (tape && (r->placed || json))
        return command_misused("explain", "tape does not take %s",
                               json ? "--json" : "--kind, --layer, --head or --row");
    if (!tape && r->dot)
        return command_misused("explain", "--dot is not an option of attention");
    return -1;
}

int explain_model(const char *topic, const struct model_request *r, bool json)
{
    const int wrong = explain_check(topic, r, json);
    if (wrong >= 0)
        return wrong;
    char *text =
        strcmp(topic, "hessian") == 0 ? explain_of_batch(r, json) : explain_of_text(topic, r, json);
    if (text)
        fputs(text, stdout);
    memory_free(text);
    return text ? EXIT_OK : command_failed("explain");
}
