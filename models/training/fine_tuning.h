/* What of a model is trained, and how: parameters that are frozen, and groups with a learning rate
   and a decay of their own, as the command line and files name them. */
#ifndef SOFTBACK_MODELS_TRAINING_FINE_TUNING_H
#define SOFTBACK_MODELS_TRAINING_FINE_TUNING_H

#include "models/setting.h"
#include "nn/groups.h"

struct fine_tuning {
    char freeze[SETTING_TEXT]; /* patterns, which commas separate */
    char groups[SETTING_TEXT]; /* "PATTERN:rate=0.1,decay=0,frozen"; semicolons separate several */
};

void fine_tuning_add_settings(struct setting_table *table, struct fine_tuning *tuning);

/* Whether the text of the groups can be understood. */
bool fine_tuning_check(const struct fine_tuning *tuning);

/* Groups and freezes the parameters of a model. */
bool fine_tuning_apply(const struct fine_tuning *tuning, sb_parameters *weights);

#endif
