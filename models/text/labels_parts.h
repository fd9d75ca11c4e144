/* Internal functions of labels. */
#ifndef SOFTBACK_MODELS_TEXT_LABELS_PARTS_H
#define SOFTBACK_MODELS_TEXT_LABELS_PARTS_H

#include "models/text/labels.h"

/* The labels (NULL: none) and the different texts among `count`; fails as sb_labels_new does. */
sb_labels *labels_union(const sb_labels *labels, const char *const *texts, int64_t count);

/* All of them. */
const char *const *labels_texts(const sb_labels *labels);

/* "neg, pos, ...", for a message: the first of the labels that `known` (NULL: none) lacks. */
struct labels_text {
    char text[200];
};
struct labels_text labels_text(const sb_labels *labels, const sb_labels *known);

#endif
