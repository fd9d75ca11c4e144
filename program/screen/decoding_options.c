#include "program/screen/decoding_options.h"
#include "program/screen/command.h"
#include "program/screen/machine_options.h"
#include "program/screen/options.h"
#include <string.h>

static sb_weight_format decoding_format(struct argp_state *state, const char *argument)
{
    const bool int8 = strcmp(argument, "int8") == 0;
    if (!int8 && strcmp(argument, "stored") != 0)
        options_refuse(state, "--weights: \"%s\" is none of int8, stored", argument);
    return int8 ? SB_WEIGHTS_INT8 : SB_WEIGHTS_AS_STORED;
}

error_t decoding_option(int key, char *argument, struct argp_state *state, sb_decoding_options *o)
{
    switch (key) {
    case KEY_BEAM:
        o->beam_width = options_count(state, "beam", argument, 1, 1000);
        return 0;
    case KEY_LENGTH_PENALTY:
        o->length_penalty = options_number(state, "length-penalty", argument, 0, 100);
        o->length_penalty = o->length_penalty == 0 ? SB_ZERO : o->length_penalty;
        return 0;
    case KEY_LONGEST:
        o->longest = options_count(state, "longest-output", argument, 1, 1 << 20);
        return 0;
    case KEY_BATCH:
        o->batch_pairs = options_count(state, "batch", argument, 1, 1 << 16);
        return 0;
    case KEY_SAMPLE:
        o->sample = true;
        return 0;
    case KEY_TEMPERATURE:
        o->temperature = options_number(state, "temperature", argument, 1e-6, 1e6);
        return 0;
    case KEY_TOP_K:
        o->top_k = options_count(state, "top-k", argument, 1, 1 << 24);
        return 0;
    case KEY_TOP_P:
        o->top_p = options_number(state, "top-p", argument, 1e-9, 1);
        return 0;
    case KEY_SEED:
        o->seed = (uint64_t)options_count(state, "seed", argument, 0, INT64_MAX);
        return 0;
    case KEY_WEIGHTS:
        o->weights = decoding_format(state, argument);
        return 0;
    default:
        return machine_option(key, argument, state);
    }
}

bool decoding_check(const char *command, const sb_decoding_options *o)
{
    const char *of_sampling = o->temperature > 0 ? "temperature"
                              : o->top_k > 0     ? "top-k"
                              : o->top_p > 0     ? "top-p"
                              : o->seed > 0      ? "seed"
                                                 : NULL;
    if (!o->sample && of_sampling)
        command_misused(command, "--%s needs --sample", of_sampling);
    else if (o->sample && o->beam_width > 1)
        command_misused(command, "--sample and --beam cannot be combined; use one");
    else
        return true;
    return false;
}
