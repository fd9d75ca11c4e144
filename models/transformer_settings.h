/* The settings of text models (text_model.h). A kind of models has some of them. */
#ifndef SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H
#define SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H

#include "models/classifier.h"
#include "models/setting.h"

/* Settings of the model. */
void setting_add_transformer(struct setting_table *table, sb_transformer_options *options);
void setting_add_ties(struct setting_table *table, bool *tie_embeddings, bool *share_embeddings);
void setting_add_pooling(struct setting_table *table, sb_pooling *pooling, sb_activation *hidden);
void setting_add_context(struct setting_table *table, int64_t *context, bool *running_text);

/* Settings of training. */
void setting_add_dropout(struct setting_table *table, sb_transformer_options *options);
void setting_add_smoothing(struct setting_table *table, double *label_smoothing);

#endif
