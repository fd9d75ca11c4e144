/* What jobs of training and decoding share: the sizes of a transformer, and made-up words. */
#ifndef SOFTBACK_PROGRAM_BENCH_WORDS_H
#define SOFTBACK_PROGRAM_BENCH_WORDS_H

#include "models/text/vocabulary.h"
#include "nn/transformer.h"

/* From width, heads, feed_forward, layers (on each side), dropout and bf16. */
bool words_transformer(const char *line, sb_transformer_options *options);

/* A vocabulary of as many symbols as the line says; its words are "w0", "w1" ... */
sb_vocabulary *words_vocabulary(const char *line);

#endif
