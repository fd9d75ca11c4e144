/* softback explain attention and tape, for a stored model and one text; hessian, for a batch. */
#ifndef SOFTBACK_PROGRAM_COMMANDS_EXPLAIN_MODEL_H
#define SOFTBACK_PROGRAM_COMMANDS_EXPLAIN_MODEL_H

#include "program/options/options.h"
#include "program/run/stored_twin.h"
#include "teach/explain/model.h"
#include "teach/explain/topic.h"

struct model_request {
    const char *text, *target;         /* target NULL: the model's output */
    struct stored_twin_request stored; /* the model, and for hessian its batch */
    struct model_place place;
    bool dot;
};

/* Kinds of options: those of a stored model, and the topics' own. */
enum {
    OF_FILE = TAKES_REFERENCE << 1,
    OF_TEXT = TAKES_REFERENCE << 2,
    OF_PLACE = TAKES_REFERENCE << 3,
    OF_DRAWING = TAKES_REFERENCE << 4,
    OF_BATCH = TAKES_REFERENCE << 5,
    OF_MODEL = OF_FILE | OF_TEXT | OF_PLACE | OF_DRAWING | OF_BATCH,
    TAKES_ANY = OF_FILE - 1
};

void options_of_stored_model(struct options *options, struct model_request *request);

/* Prints the page, or the drawing; returns an exit code. */
int explain_model(const struct options *options, const char *topic,
                  const struct model_request *request, bool json);

#endif
