/* The kind of classifiers, and the setting that only they have. */
#ifndef SOFTBACK_MODELS_CLASSIFIER_KIND_H
#define SOFTBACK_MODELS_CLASSIFIER_KIND_H

#include "models/classifier.h"
#include "models/setting.h"

extern const sb_model_kind classifier_kind;

void classifier_add_pooling(struct setting_table *table, sb_pooling *pooling);

#endif
