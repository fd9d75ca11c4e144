/* softback evaluate: what is asked for, and how each kind of model is measured. */
#ifndef SOFTBACK_PROGRAM_KINDS_EVALUATE_H
#define SOFTBACK_PROGRAM_KINDS_EVALUATE_H

#include "models/decoding/decoding.h"
#include "models/training/checkpoint.h"
#include <jansson.h>

struct evaluate_request {
    sb_decoding_options decoding;
    const char *data, *task, *path, *base;
    int64_t count, show;
    bool json;
};

/* Each measures a model of its kind and prints what it finds; false, with a message, on failure. */
bool evaluate_pairs(const struct evaluate_request *request, const struct checkpoint *checkpoint);
bool evaluate_language(const struct evaluate_request *request, const struct checkpoint *checkpoint);
bool evaluate_classifier(const struct evaluate_request *request,
                         const struct checkpoint *checkpoint);

/* A number for JSON; null when it is not finite. */
json_t *evaluate_number(double x);
/* Prints a JSON object, which is released. */
void evaluate_print(json_t *json);

#endif
