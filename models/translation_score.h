/* Scores of a model's outputs for the sources of pairs, compared with the targets. */
#ifndef SOFTBACK_MODELS_TRANSLATION_SCORE_H
#define SOFTBACK_MODELS_TRANSLATION_SCORE_H

#include "../tensor/communicator.h"
#include "decoding/decoding.h"
#include "models/text/pairs.h"
#include "models/text/vocabulary.h"
#include "seq2seq.h"
#include "text/metrics.h"
#include "translation.h"

/*
 * Decodes the sources of pairs (in batches; options may be NULL: greedy), which the ranks of a
 * communicator share (NULL: this one alone), and scores the outputs, by units of the target.
 * `text`, all NULL, receives one for each pair, to be freed with sb_free, or none after a failure.
 * The results have the same bits for any number of ranks.
 */
bool translation_score(sb_communicator *c, const sb_seq2seq *model, const sb_pairs *pairs,
                       const sb_decoding_options *options, sb_text_score *score, char *text[]);

/* All scores of held-out pairs; `evaluation` keeps its loss. Ranks share the pairs. */
bool translation_evaluate(sb_communicator *c, const sb_seq2seq *model, const sb_held_pairs *held,
                          sb_evaluation *evaluation);

struct translation_error {
    int64_t pair, distance; /* edit distance to the expected text, in symbols */
};

/* The outputs that differ from their targets, the worst first, of those for the first n pairs;
 * *wrong: how many. An array for memory_free, or NULL. */
struct translation_error *translation_errors(const sb_vocabulary *vocabulary, const sb_pairs *pairs,
                                             char *const outputs[], int64_t n, int64_t *wrong);

#endif
