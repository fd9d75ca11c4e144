/* What of a model is trained, and how: parameters that are frozen, groups with a learning rate and
   a decay of their own, and LoRA adapters, as the command line and files name them. */
#ifndef SOFTBACK_MODELS_TRAINING_FINE_TUNING_H
#define SOFTBACK_MODELS_TRAINING_FINE_TUNING_H

#include "models/field.h"
#include "nn/groups.h"

struct fine_tuning {
    char freeze[FIELD_TEXT_SIZE];  /* patterns, which commas separate */
    char groups[FIELD_TEXT_SIZE];  /* "PATTERN:rate=0.1,decay=0,frozen"; semicolons separate several
                                    */
    int64_t lora;                  /* rank of LoRA adapters; 0: none */
    double lora_alpha;             /* 0: the rank */
    char lora_on[FIELD_TEXT_SIZE]; /* "": "*.query,*.value" */
    uint64_t base; /* with adapters, the fingerprint of the model that they are for */
};

/* Whether the text of the groups can be understood. */
bool fine_tuning_check(const struct fine_tuning *tuning);

/* Before a model is made: its linear layers get the adapters. */
bool fine_tuning_prepare(const struct fine_tuning *tuning, sb_parameters *weights);

/* Groups and freezes the parameters of a model; with adapters, all others are frozen. */
bool fine_tuning_apply(const struct fine_tuning *tuning, sb_parameters *weights);

#endif
