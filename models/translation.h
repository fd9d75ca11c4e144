/* Translation: the output of an encoder-decoder for a text. */
#ifndef SOFTBACK_MODELS_TRANSLATION_H
#define SOFTBACK_MODELS_TRANSLATION_H

#include "decoding/decoding.h"
#include "seq2seq.h"

/* The model's output for a text (which may be empty), to be freed with sb_free. Options may be
   NULL: greedy. */
SB_API char *sb_translate(const sb_seq2seq *model, const char *text,
                          const sb_decoding_options *options);

/* The model's outputs for n texts, each to be freed with sb_free. On failure there is none. */
SB_API bool sb_translate_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                               const sb_decoding_options *options, char *outputs[]);

/* The outputs for n texts as symbols, with their scores, to be freed with sb_decoded_free. */
SB_API bool sb_decode_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                            const sb_decoding_options *options, sb_decoded outputs[]);

/* The held-out pairs of an encoder-decoder, `held` of sb_evaluate. Its error is the share of
   sources whose output is none of their references. Options may be NULL: greedy. */
typedef struct {
    const sb_pairs *pairs;
    const sb_decoding_options *options;
} sb_held_pairs;

#endif
