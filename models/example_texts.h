/* Examples of the library's kinds. */
#ifndef SOFTBACK_MODELS_EXAMPLE_TEXTS_H
#define SOFTBACK_MODELS_EXAMPLE_TEXTS_H

#include "models/example.h"
#include "nn/transformer.h"

void example_free(sb_example *example);

/* A source and what is written for it, by an encoder and a decoder. Takes over `written`, which may
   be NULL after a failure. On failure there is nothing to free. */
bool example_of_pair(sb_example *example, sb_vocabulary *source, sb_vocabulary *target,
                     const sb_transformer_options *options, const char *text, char *written);

/* A text that a decoder continues: with `bare` without a symbol of begin before it; in windows of
   at most `context` symbols, if that is not 0. */
bool example_of_decoder(sb_example *example, sb_vocabulary *vocabulary,
                        const sb_transformer_options *options, const char *text, bool bare,
                        int64_t context);

/* A text that an encoder reads, with one of `labels` labels. */
bool example_of_encoder(sb_example *example, sb_vocabulary *vocabulary,
                        const sb_transformer_options *options, const char *text, int64_t labels,
                        int64_t label);

#endif
