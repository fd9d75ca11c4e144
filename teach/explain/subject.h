/* The subject of pages on a stored model: the model, and one text that goes through it. */
#ifndef SOFTBACK_TEACH_EXPLAIN_SUBJECT_H
#define SOFTBACK_TEACH_EXPLAIN_SUBJECT_H

#include "models/model.h"

struct subject {
    sb_model model; /* the caller's */
    sb_example example;
};

/* `target` NULL stands for what the model itself writes; a model that writes nothing takes none. To
   be ended also after a failure. */
bool subject_begin(struct subject *subject, const sb_model *model, const char *text,
                   const char *target);
void subject_end(struct subject *subject);

/* The attention of this name, or the first one (NULL). Fails where the model has a single one and a
   name is given. */
const sb_example_attention *subject_attention(const struct subject *subject, const char *name);

/* Element (i, j) of the weights (1, H, Lq, Lk) of head h, or the mean over all heads for h < 0. */
double subject_weight(const sb_tensor *w, int64_t h, int64_t i, int64_t j);

/* A symbol as shown: spaces are visible, control characters are replaced. */
struct subject_label {
    char text[256];
};
struct subject_label subject_label(const sb_example_axis *axis, int64_t i);

#endif
