/* Scores of a model's outputs for the sources of pairs, compared with the targets. */
#ifndef SOFTBACK_MODELS_TRANSLATION_SCORE_H
#define SOFTBACK_MODELS_TRANSLATION_SCORE_H

#include "../tensor/communicator.h"
#include "decoding/decoding.h"
#include "seq2seq.h"
#include "text/metrics.h"
#include "translation.h"

/*
 * Decodes the sources of `count` pairs from `first` on (in batches; options may be NULL: greedy)
 * and scores the outputs, by units of the target. `outputs`, unless NULL, receives `count` texts,
 * each to be freed with sb_free.
 */
bool sb_evaluate_texts(const sb_seq2seq *model, const sb_pairs *pairs, int64_t first, int64_t count,
                       const sb_decoding_options *options, sb_text_score *score, char *outputs[]);

/* The same, divided among the ranks of a communicator (NULL: this one alone); the results have the
   same bits for any number of ranks. */
bool translation_score(sb_communicator *c, const sb_seq2seq *model, const sb_pairs *pairs,
                       int64_t first, int64_t count, const sb_decoding_options *options,
                       sb_text_score *score, char *outputs[]);

/* All scores of held-out pairs; `evaluation` keeps its loss. Ranks share the pairs. */
bool translation_evaluate(sb_communicator *c, const sb_seq2seq *model, const sb_held_pairs *held,
                          sb_evaluation *evaluation);

#endif
