/* The kind of classifiers. */
#ifndef SOFTBACK_MODELS_CLASSIFIER_KIND_H
#define SOFTBACK_MODELS_CLASSIFIER_KIND_H

#include "models/classifier.h"

extern const sb_model_kind classifier_kind;

#endif
