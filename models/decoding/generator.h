/*
 * A generator: the functions of a model that decoding needs, and the sequences that it extends.
 *
 * An encoder-decoder reads a text as the source, and its outputs begin empty; a language model
 * reads it as a prompt, with which its outputs begin.
 */
#ifndef SOFTBACK_MODELS_DECODING_GENERATOR_H
#define SOFTBACK_MODELS_DECODING_GENERATOR_H

#include "models/decoding/decoding.h"
#include "models/text/vocabulary.h"
#include "nn/stack.h"

struct generator {
    const void *model;
    const sb_vocabulary *vocabulary; /* of the texts */
    const sb_vocabulary *outputs;    /* of the outputs */
    const sb_decoder *decoder;
    int64_t positions; /* how many the decoder has; 0: any number */
    int64_t window;    /* how many symbols it reads at most; 0: all (language models) */
    bool bare;         /* a prompt that is not empty has no "begin" before it */
    bool waits;        /* for other ranks, which hold parts of the weights */
    /* ids (B, L), lengths (B) -> memory (B, L, C); NULL in a language model */
    sb_tensor *(*encode)(const void *model, sb_tensor *ids, sb_tensor *lengths);
    /* y (..., C) of the decoder -> logits (..., V) */
    sb_tensor *(*output)(const void *model, sb_tensor *y);
};

/* A text to decode, encoded. */
struct decoding_text {
    int64_t index; /* among the caller's */
    int64_t length;
    int32_t *ids;
    int64_t longest; /* the most symbols of its output */
    sb_decoded *output;
};

/* Sequences that grow together, a step at a time. */
struct sequences {
    const struct generator *generator;
    int64_t count;
    sb_tensor *memory; /* until it is not needed any more */
    int32_t *lengths;  /* of the memory, one for each sequence; NULL in a language model */
    sb_decoder_state *state;
    int64_t length;  /* without a state or with a window: how many symbols the decoder sees of each
                        sequence so far, */
    int32_t *prefix; /*     and which (count, length) */
    bool slid;       /* the first symbols of all were forgotten, as the window was full */
    int64_t start_length;
    int32_t *start; /* (texts, start_length): the input of the first step */
};

/* Begins a sequence for each of n texts; in a language model all must be of one length. The
   sequences are to be ended even on failure. */
bool sequences_begin(struct sequences *s, const struct generator *generator, int64_t n,
                     const struct decoding_text texts[], bool cache);
void sequences_end(struct sequences *s);

/* Adds L symbols to each sequence, ids (count, L), and computes the logits of what comes next:
   (count, V), on the open tape, which must not record. */
sb_tensor *sequences_next(struct sequences *s, int64_t L, const int32_t *ids);

/* Notes what a device did to the decoder's state: sequence i grew by the symbol ids[i], and then
   became what sequence rows[i] was, unless rows is NULL. */
bool sequences_note(struct sequences *s, const int32_t *ids, const int32_t *rows);

/* Sequence i becomes what sequence rows[i] was, for i in 0..n-1. After a failure they can only be
   ended. */
bool sequences_reorder(struct sequences *s, int64_t n, const int32_t *rows);

/* Decodes n texts with a generator; options that are 0 get their defaults. */
bool generator_decode(const struct generator *generator, const char *const *texts, int64_t n,
                      const sb_decoding_options *options, sb_decoded outputs[]);

/* The texts of outputs, in their vocabulary; each is to be freed with sb_free. */
bool generator_texts(const sb_vocabulary *vocabulary, int64_t n, const sb_decoded decoded[],
                     char *outputs[]);

#endif
