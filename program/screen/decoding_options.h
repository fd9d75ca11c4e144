/* The options of decoding that translate and evaluate share. */
#ifndef SOFTBACK_PROGRAM_SCREEN_DECODING_OPTIONS_H
#define SOFTBACK_PROGRAM_SCREEN_DECODING_OPTIONS_H

#include "models/decoding/decoding.h"
#include "program/screen/machine_options.h"
#include <argp.h>
#include <stdbool.h>

#define WEIGHTS_OPTION(group)                                                                      \
    {                                                                                              \
        "weights", KEY_WEIGHTS, "FORMAT", 0,                                                       \
            "int8: weights and their inputs rounded to 8 bits, faster on the CPU; stored: as in "  \
            "the file [stored]",                                                                   \
            group                                                                                  \
    }

/* Entries for a command's list of options. */
#define DECODING_OPTIONS                                                                           \
    {.doc = "Decoding:", .group = 1},                                                              \
        {"beam", KEY_BEAM, "N", 0, "width of beam search [default 1: greedy]", 1},                 \
        {"length-penalty",                                                                         \
         KEY_LENGTH_PENALTY,                                                                       \
         "X",                                                                                      \
         0,                                                                                        \
         "length penalty of beam search; higher favours longer outputs [1 for words and byte "     \
         "pairs, else 0]",                                                                         \
         1},                                                                                       \
        {"longest-output",                                                                         \
         KEY_LONGEST,                                                                              \
         "N",                                                                                      \
         0,                                                                                        \
         "maximum output length in symbols [50 + 2 x source length]",                              \
         1},                                                                                       \
        WEIGHTS_OPTION(1), {"batch",                                                               \
                            KEY_BATCH,                                                             \
                            "N",                                                                   \
                            0,                                                                     \
                            "texts decoded together; results do not depend on it [64]",            \
                            1},                                                                    \
        MACHINE_OPTIONS(1)

enum decoding_key {
    KEY_BEAM = 500,
    KEY_LENGTH_PENALTY,
    KEY_LONGEST,
    KEY_BATCH,
    KEY_SAMPLE,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_SEED,
    KEY_WEIGHTS,
};

/* Handles such an option; ARGP_ERR_UNKNOWN for other keys. */
error_t decoding_option(int key, char *argument, struct argp_state *state,
                        sb_decoding_options *options);

/* Whether the options are compatible; prints which are not, as command_misused does. */
bool decoding_check(const char *command, const sb_decoding_options *options);

#endif
