/* The kind of classifiers, and their labels. */
#ifndef SOFTBACK_MODELS_CLASSIFIER_KIND_H
#define SOFTBACK_MODELS_CLASSIFIER_KIND_H

#include "models/classifier.h"

extern const sb_model_kind classifier_kind;

/* The labels, which the model owns. */
const sb_labels *classifier_labels(const sb_classifier *model);

/* sb_classifier_for, with these labels. */
sb_classifier *classifier_of(sb_parameters *weights, sb_vocabulary *vocabulary,
                             const sb_labels *labels, const sb_classifier_options *options);

/* A model with the weights of another, which has no adapters, for `labels`, which include those of
   the other: the head keeps their rows and has new ones for the rest. */
sb_classifier *classifier_grow(sb_parameters *weights, const sb_classifier *from,
                               const sb_labels *labels);

#endif
