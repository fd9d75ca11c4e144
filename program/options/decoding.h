/* The options of commands that decode with a stored model. */
#ifndef SOFTBACK_PROGRAM_OPTIONS_DECODING_H
#define SOFTBACK_PROGRAM_OPTIONS_DECODING_H

#include "models/decoding/decoding.h"
#include "program/options/machine.h"

enum { OF_SAMPLING = 1 }; /* the kind of the rows of sampling */

/* Of sb_decoding_options: --weights; --temperature, --top-k, --top-p and --seed; those that
   translate and evaluate share, and --threads and --device. */
extern const struct field weights_fields[], sampling_fields[], decoding_fields[];

/* --base, for a model that may be a file of LoRA adapters. */
#define BASE_FIELD(owner)                                                                          \
    "base", FIELD(owner, base), "for a file of LoRA adapters: the model that they are for",        \
        .argument = "FILE"

#endif
