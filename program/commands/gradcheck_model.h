/* softback gradcheck --model: all parameters of a trained model. */
#ifndef SOFTBACK_PROGRAM_COMMANDS_GRADCHECK_MODEL_H
#define SOFTBACK_PROGRAM_COMMANDS_GRADCHECK_MODEL_H

#include "program/run/stored_twin.h"

struct gradcheck_model_request {
    struct stored_twin_request stored;
    bool second_order;
};

/* Checks the model in its float64 twin and prints the result; returns the exit code. */
int gradcheck_model(const struct gradcheck_model_request *request);

#endif
