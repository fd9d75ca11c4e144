/* The kind of encoder-decoders, and their default options. */
#ifndef SOFTBACK_MODELS_SEQ2SEQ_KIND_H
#define SOFTBACK_MODELS_SEQ2SEQ_KIND_H

#include "models/seq2seq.h"

extern const sb_model_kind seq2seq_kind;
extern const sb_seq2seq_options seq2seq_defaults;

#endif
