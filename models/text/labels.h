/* Labels: the names of classes, each with a number. */
#ifndef SOFTBACK_MODELS_TEXT_LABELS_H
#define SOFTBACK_MODELS_TEXT_LABELS_H

#include "../../tensor/error.h"
#include <stdint.h>

typedef struct sb_labels sb_labels;

/* The different texts among `count`, in the order of their bytes. Fails when one is NULL, empty or
   not UTF-8, when there are fewer than two, and without memory. */
SB_API sb_labels *sb_labels_new(const char *const *texts, int64_t count);
SB_API void sb_labels_free(sb_labels *labels);

SB_API int64_t sb_labels_count(const sb_labels *labels); /* NULL: 0 */
/* The i-th label; NULL, without a message, past the last. */
SB_API const char *sb_labels_text(const sb_labels *labels, int64_t i);
/* The number of a label; -1, without a message, where there is none. */
SB_API int64_t sb_labels_find(const sb_labels *labels, const char *text);

#endif
