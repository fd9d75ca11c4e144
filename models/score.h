/* Scores of a model's outputs, compared with the targets of pairs: of an encoder-decoder, and which
   labels a classifier confuses. */
#ifndef SOFTBACK_MODELS_SCORE_H
#define SOFTBACK_MODELS_SCORE_H

#include "../tensor/communicator.h"
#include "decoding/decoding.h"
#include "models/classifier.h"
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

/* ---- confusion.c: which labels a classifier confuses ---- */

struct confusion {
    int64_t labels, texts;
    int64_t *cell; /* (labels, labels): texts by label, and by predicted label */
    double f1;     /* macro-F1: the mean over the labels that occur */
};

/* Classifies the sources of pairs, whose targets are labels; fails where the model lacks one. To be
   freed with confusion_free. */
bool confusion_measure(struct confusion *confusion, const sb_classifier *model,
                       const sb_pairs *pairs);
void confusion_free(struct confusion *confusion);

int64_t confusion_at(const struct confusion *confusion, int64_t label, int64_t taken);
double confusion_accuracy(const struct confusion *confusion);

#endif
