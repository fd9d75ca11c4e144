/* The kind of language models, and the settings that only they have. */
#ifndef SOFTBACK_MODELS_LANGUAGE_KIND_H
#define SOFTBACK_MODELS_LANGUAGE_KIND_H

#include "models/language_model.h"
#include "models/setting.h"

extern const sb_model_kind language_model_kind;

struct language_settings {
    int64_t context;
    bool running_text;
};

void language_add_settings(struct setting_table *table, struct language_settings *settings);

#endif
