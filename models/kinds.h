/* The library's kinds of models: one word each in `models` of meson.build, and one file. */
#ifndef SOFTBACK_MODELS_KINDS_H
#define SOFTBACK_MODELS_KINDS_H

#include "models/model.h"

/* The i-th kind; NULL past the last. */
const sb_model_kind *model_kind_at(int i);

/* Whether a kind has a setting (training/settings.h). All kinds have those that none lists. */
bool model_has_setting(const sb_model_kind *kind, const char *name);

/* Whether models of a kind can be split over ranks by "batch", "heads" or "sequence". */
bool model_splits(const sb_model_kind *kind, const char *what);

#endif
