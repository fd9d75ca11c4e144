#include "program/explain_model.h"
#include "program/command.h"
#include "program/options.h"
#include "tensor/device.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum attention_kind explain_kind_of(const char *argument, struct argp_state *state)
{
    static const char *const kinds[] = {"cross", "encoder", "decoder"};
    for (int kind = 0; kind < 3; kind++)
        if (strcmp(kinds[kind], argument) == 0)
            return (enum attention_kind)kind;
    options_refuse(state, "--kind: \"%s\" is none of cross, encoder, decoder", argument);
    return CROSS_ATTENTION;
}

error_t explain_model_option(int key, char *argument, struct argp_state *state,
                             struct model_request *r)
{
    static const char *const names[] = {"model", "input", "translation", "kind",
                                        "layer", "head",  "row",         "dot"};
    if (key < KEY_MODEL || key > KEY_DOT)
        return ARGP_ERR_UNKNOWN;
    r->given = names[key - KEY_MODEL];
    r->placed |= key >= KEY_KIND && key <= KEY_ROW;
    switch (key) {
    case KEY_MODEL:
        r->model = argument;
        break;
    case KEY_INPUT:
        r->text = argument;
        break;
    case KEY_TRANSLATION:
        r->target = argument;
        break;
    case KEY_KIND:
        r->place.kind = explain_kind_of(argument, state);
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
    default:
        r->dot = true;
    }
    return 0;
}

static char *explain_text_of(const char *topic, const struct subject *subject,
                             const struct model_request *r, bool json)
{
    if (strcmp(topic, "tape") == 0)
        return model_tape(subject, r->dot ? drawing_dot : drawing_svg);
    struct page *page = model_row_page(subject, &r->place);
    char *text = NULL;
    if (page)
        text = json ? page_as_json(page) : page_as_text(page, isatty(STDOUT_FILENO));
    page_free(page);
    return text;
}

static int explain_check(const char *topic, const struct model_request *r, bool json)
{
    const bool tape = strcmp(topic, "tape") == 0;
    if (!tape && strcmp(topic, "attention") != 0)
        return command_misused("explain", "--%s is not an option of %s", r->given, topic);
    if (!r->model || !r->text)
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
    struct subject subject;
    const int wrong = explain_check(topic, r, json);
    if (wrong >= 0)
        return wrong;
    char *text = NULL;
    if (subject_open(&subject, r->model, r->text, r->target)) {
        text = explain_text_of(topic, &subject, r, json);
        subject_close(&subject);
    }
    if (text)
        fputs(text, stdout);
    memory_free(text);
    return text ? EXIT_OK : command_failed("explain");
}
