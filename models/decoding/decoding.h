/*
 * Decoding: a model writes the output for a text, one symbol after the other.
 *
 * Each symbol is chosen by its probability given the source and the symbols before it. Padding,
 * begin and unknown are never chosen: they are not part of a text. An output ends with the symbol
 * "end", or is cut when it is as long as allowed.
 *
 *   greedy    takes the most probable symbol at each step; of equal ones that with the lowest id
 *   beam      keeps the beam_width most probable hypotheses at each step, and also that of greedy
 *             decoding, so that the output never scores below greedy's. A text is done when
 *             beam_width outputs have ended, or when no hypothesis can lead to a better one
 *   sampling  draws each symbol by its probability
 *
 * The output for a text does not depend on the other texts or on batching: it has the same symbols,
 * and a score of the same bits.
 */
#ifndef SOFTBACK_MODELS_DECODING_DECODING_H
#define SOFTBACK_MODELS_DECODING_DECODING_H

#include "../../ops/context.h"
#include "../../tensor/random.h"
#include "../../tensor/tensor.h"
#include <stdbool.h>
#include <stdint.h>

/* How a beam scores its outputs, and when it ends. */
typedef enum {
    SB_BEAM_BOUNDED, /* as above; scores are those of sb_decoded */
    /* As `generate` of Hugging Face's transformers: the score is log_probability / |Y|^alpha, with
       a default alpha of 1; greedy decoding gets no place. A text is done when beam_width outputs
       have ended, and none scores below the best hypothesis at its length so far. */
    SB_BEAM_GENERATE,
    SB_BEAM_EARLY, /* the same, but it is done as soon as beam_width outputs have ended */
} sb_beam_rule;

typedef struct {
    int64_t beam_width;    /* hypotheses kept at each step; 0 and 1: greedy */
    double length_penalty; /* the alpha of the score, at least 0; default 1 for a beam over words or
                              byte pairs, else none; SB_ZERO: none */
    sb_beam_rule beam_rule;
    bool renormalise;    /* of a beam: padding, never chosen, has no share of the probability */
    int64_t longest;     /* the most symbols of an output; 0: 2 n + 50 for a source of n */
    bool force_end;      /* "end" follows an output that would be cut, with probability 1 */
    bool sample;         /* draw symbols; needs beam_width 0 or 1 */
    double temperature;  /* of sampling: probabilities become p^(1/T), normalised; 0: 1 */
    int64_t top_k;       /* sampling among the k most probable symbols; 0: all */
    double top_p;        /* and among the fewest that together have this probability, in (0, 1];
                            0: all (Holtzman et al. 2020) */
    uint64_t seed;       /* of sampling; the i-th text of a call has its own random stream */
    int64_t batch_pairs; /* the most texts that a thread decodes together; 0: 64 */
    sb_weight_format weights; /* SB_WEIGHTS_INT8, on the CPU: fewer bytes and integer products, and
                                 outputs that may differ a little from those of the model's own */
    bool no_cache; /* recomputes all earlier positions for each symbol: slow, for tests */
    /* Called with each symbol as it is chosen for text i, but for "end"; false ends decoding, as a
       failure. Not with a beam. NULL: nobody listens. */
    bool (*listen)(void *listener, int64_t i, int32_t id);
    void *listener;
} sb_decoding_options;

/* An output. With |Y| the number of symbols chosen, "end" included,
   score = log_probability / ((5 + |Y|) / 6)^alpha   (Wu et al. 2016, equation 14). */
typedef struct {
    int32_t *ids;           /* without "end"; never NULL */
    int64_t length;         /* how many */
    bool ended;             /* false: cut */
    bool slid;              /* a language model's context was full, and it forgot the beginning */
    double log_probability; /* the sum over the symbols, "end" included */
    double score;
} sb_decoded;

/*
 * Draws a symbol from each row of logits (n, V) or (V), any of the V: by its probability, or as
 * temperature, top_k and top_p of the options say; NULL: by probability. `random` goes on by one
 * number for each row. For loops of your own; sb_model_decode draws by itself. Fails when there is
 * no row or no symbol, and when a logit is NaN or +inf or all of a row are -inf.
 */
SB_API bool sb_sample(sb_tensor *logits, const sb_decoding_options *options, sb_random *random,
                      int32_t ids[]);

/* Frees the ids of n outputs. */
SB_API void sb_decoded_free(int64_t n, sb_decoded outputs[]);

#endif
