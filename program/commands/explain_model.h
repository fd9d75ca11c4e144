/* softback explain attention and tape, for a stored model and one text; hessian, for a batch. */
#ifndef SOFTBACK_PROGRAM_COMMANDS_EXPLAIN_MODEL_H
#define SOFTBACK_PROGRAM_COMMANDS_EXPLAIN_MODEL_H

#include "program/run/stored_twin.h"
#include "teach/explain/model.h"
#include <argp.h>

struct model_request {
    const char *text, *target;         /* target NULL: the model's output */
    struct stored_twin_request stored; /* the model, and for hessian its batch */
    const char *given;                 /* the last of these options; NULL: none */
    struct model_place place;
    bool placed, dot, texts, batch; /* kinds of options that are given */
};

enum {
    KEY_MODEL = 0x300,
    KEY_INPUT,
    KEY_TRANSLATION,
    KEY_KIND,
    KEY_LAYER,
    KEY_HEAD,
    KEY_ROW,
    KEY_DOT,
    KEY_DATA,
    KEY_TASK,
    KEY_COUNT
};

#define EXPLAIN_MODEL_OPTIONS                                                                      \
    {"model", KEY_MODEL, "FILE", 0, "attention, hessian, tape: the model file", 1},                \
        {"input", KEY_INPUT, "TEXT", 0, "attention, tape: the source text", 1},                    \
        {"translation", KEY_TRANSLATION, "TEXT", 0, "the target text [the model's output]", 1},    \
        {"kind", KEY_KIND, "WORD", 0, "attention: cross, encoder or decoder [cross]", 1},          \
        {"layer", KEY_LAYER, "N", 0, "attention: its layer, from 1 [the last]", 1},                \
        {"head", KEY_HEAD, "N", 0, "attention: its head, from 1 [1]", 1},                          \
        {"row", KEY_ROW, "N", 0, "attention: the row, from 1 [1]", 1},                             \
        {"dot", KEY_DOT, NULL, 0, "tape: print Graphviz instead of SVG", 1},                       \
        {"data", KEY_DATA, "FILE", 0, "hessian: pairs, lines of source, tab, target", 1},          \
        {"task", KEY_TASK, "NAME", 0, "hessian: held-out pairs of a built-in task", 1},            \
    {                                                                                              \
        "count", KEY_COUNT, "N", 0, "hessian: number of pairs [16]", 1                             \
    }

/* ARGP_ERR_UNKNOWN for a key that is none of these. */
error_t explain_model_option(int key, char *argument, struct argp_state *state,
                             struct model_request *request);

/* Prints the page, or the drawing; returns an exit code. */
int explain_model(const char *topic, const struct model_request *request, bool json);

#endif
