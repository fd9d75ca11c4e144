/* The classifier: an encoder, the mean over its outputs or the first of them, and a logit for each
   label. */
#ifndef SOFTBACK_MODELS_CLASSIFIER_H
#define SOFTBACK_MODELS_CLASSIFIER_H

#include "../nn/stack.h"
#include "data/labelled.h"
#include "model.h"
#include "text_options.h"

typedef sb_text_model_options sb_classifier_options;

typedef struct sb_classifier sb_classifier;

/* A model for a vocabulary, which it retains, and for `count` different labels, which it copies and
   numbers in the order of their bytes, as sb_labels does. It adds its weights to the set:
   "encoder...", "output.weight", "output.bias", and with a
   hidden layer "hidden.weight" and "hidden.bias". The set must outlive the model. Options may be
   NULL. */
SB_API sb_classifier *sb_classifier_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                        const char *const *labels, int64_t count,
                                        const sb_classifier_options *options);
SB_API void sb_classifier_free(sb_classifier *model);

/* The options with every default filled in, the model's parts, and the number of labels. */
SB_API const sb_classifier_options *sb_classifier_options_of(const sb_classifier *model);
SB_API sb_vocabulary *sb_classifier_vocabulary(const sb_classifier *model);
SB_API sb_encoder *sb_classifier_encoder(const sb_classifier *model);
SB_API int64_t sb_classifier_labels(const sb_classifier *model);
/* The i-th label; NULL, without a message, past the last. */
SB_API const char *sb_classifier_label(const sb_classifier *model, int64_t i);

/* The logits (B, labels) of a batch of texts (data/labelled.h), on the open tape. The batch may
   have `segments` (B, L) of i32, too. */
SB_API sb_tensor *sb_classifier_logits(const sb_classifier *model, const sb_batch *batch);

/* The predicted label of a text. */
typedef struct {
    int64_t label;
    double probability;
} sb_class;

/* The most probable label of each of n texts. */
SB_API bool sb_classify(const sb_classifier *model, const char *const *texts, int64_t n,
                        sb_class classes[]);

/* The pairs of text and label that a classifier is scored on, `held` of sb_evaluate: the error is
   the share of texts that get another label. */
typedef struct {
    const sb_pairs *pairs;
} sb_held_labelled;

/* Writes the model to a file, and reads an untrusted one into an empty set of weights, which after
   a failure can only be freed; as sb_model_save and sb_model_load do. */
SB_API bool sb_classifier_save(const sb_classifier *model, const char *path);
SB_API sb_classifier *sb_classifier_load(sb_parameters *weights, const char *path);

/* The model for training and files, of the kind "classifier". */
SB_API sb_model sb_classifier_as_model(sb_classifier *model);

#endif
