/* The settings of a transformer, for the tables of kinds of models. */
#ifndef SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H
#define SOFTBACK_MODELS_TRANSFORMER_SETTINGS_H

#include "models/setting.h"
#include "nn/transformer.h"

/* Its architecture, with encoder and decoder layers as the kinds of models (enum setting_kinds)
   have them. */
void setting_add_transformer(struct setting_table *table, sb_transformer_options *options,
                             unsigned kinds);
void setting_add_ties(struct setting_table *table, bool *tie_embeddings);

/* Settings of training. */
void setting_add_dropout(struct setting_table *table, sb_transformer_options *options);
void setting_add_smoothing(struct setting_table *table, double *label_smoothing);

#endif
