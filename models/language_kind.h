/* The kind of language models. */
#ifndef SOFTBACK_MODELS_LANGUAGE_KIND_H
#define SOFTBACK_MODELS_LANGUAGE_KIND_H

#include "models/language_model.h"

extern const sb_model_kind language_model_kind;

#endif
