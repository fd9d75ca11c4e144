/* The settings of a transformer, for the tables of models that are one. */
#ifndef SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H
#define SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H

#include "models/setting.h"
#include "nn/transformer.h"

/* What it is made of; an encoder's layers where it has one. */
void setting_add_transformer(struct setting_table *table, sb_transformer_options *options,
                             bool encoder);
void setting_add_ties(struct setting_table *table, bool *tie_embeddings);

/* What it does in training. */
void setting_add_dropout(struct setting_table *table, sb_transformer_options *options);
void setting_add_smoothing(struct setting_table *table, double *label_smoothing);

#endif
