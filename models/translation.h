/* Translation: what an encoder-decoder writes for a text, by decoding. */
#ifndef SOFTBACK_MODELS_TRANSLATION_H
#define SOFTBACK_MODELS_TRANSLATION_H

#include "decoding/decoding.h"
#include "seq2seq.h"

/* The model's output for a text (which may be empty), to be freed with sb_free. Options may be
   NULL: greedy. */
SB_API char *sb_translate(const sb_seq2seq *model, const char *text,
                          const sb_decoding_options *options);

/* The same for n texts, each output to be freed with sb_free. On failure there is none. */
SB_API bool sb_translate_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                               const sb_decoding_options *options, char *outputs[]);

/* The same as symbols, with their scores, to be freed with sb_decoded_free. */
SB_API bool sb_decode_texts(const sb_seq2seq *model, const char *const *texts, int64_t n,
                            const sb_decoding_options *options, sb_decoded outputs[]);

/* What an encoder-decoder is scored on, as `held` of sb_evaluate: its error is the share of sources
   that are not translated as any of their references. Options may be NULL: greedy. */
typedef struct {
    const sb_pairs *pairs;
    const sb_decoding_options *options;
} sb_held_pairs;

#endif
