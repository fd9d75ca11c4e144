/* The options of commands that decode with a stored model. */
#ifndef SOFTBACK_PROGRAM_OPTIONS_DECODING_H
#define SOFTBACK_PROGRAM_OPTIONS_DECODING_H

#include "models/decoding/decoding.h"
#include "program/options/machine.h"

/* --base, for a model that may be a file of LoRA adapters; --weights. */
void option_base(struct options *options, const char **base);
void option_weights(struct options *options, sb_decoding_options *decoding);

/* --temperature, --top-k, --top-p and --seed, with this `kind`. */
void options_of_sampling(struct options *options, sb_decoding_options *decoding, unsigned kind);

/* Those that translate and evaluate share, and --threads and --device. */
void options_of_decoding(struct options *options, sb_decoding_options *decoding);

#endif
