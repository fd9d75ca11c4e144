/* The library's kinds of models: one word each in `models` of models/meson.build. */
#ifndef SOFTBACK_MODELS_KINDS_H
#define SOFTBACK_MODELS_KINDS_H

#include "models/classifier.h"
#include "models/language_model.h"
#include "models/seq2seq.h"

extern const sb_model_kind seq2seq_kind, language_model_kind, classifier_kind;

/* The i-th kind; NULL past the last. */
const sb_model_kind *model_kind_at(int i);

/* Whether a word is one of several, which spaces separate. */
bool words_have(const char *words, const char *word);

/* On a device, moves the parameters of a new model to one buffer, for products of several of them
   (ops/linear_group.c). */
bool model_join(sb_parameters *weights);

/* Whether models of a kind can be split over ranks by "batch", "heads" or "sequence". */
bool model_splits(const sb_model_kind *kind, const char *what);

/* In how many shares threads compute a batch: as many as wanted, or 0: as its size and the weights
   say (batch_shares); one on a device, where ranks hold parts of the weights, and where several
   threads may not call `loss`. */
int model_shares(const sb_model *model, const sb_batch *batch, int64_t wanted);

extern const sb_seq2seq_options seq2seq_defaults;

/* The labels of a classifier, which the model owns. */
const sb_labels *classifier_labels(const sb_classifier *model);

/* A model with the weights of another, which has no adapters, for `labels`, which include those of
   the other: the head keeps their rows and has new ones for the rest. */
sb_classifier *classifier_grow(sb_parameters *weights, const sb_classifier *from,
                               const sb_labels *labels);

#endif
