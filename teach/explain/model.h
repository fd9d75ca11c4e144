/* Pages and drawings of a stored model, most of them of one text that goes through it. */
#ifndef SOFTBACK_TEACH_EXPLAIN_MODEL_H
#define SOFTBACK_TEACH_EXPLAIN_MODEL_H

#include "models/drawing_graph.h"
#include "models/model_twin.h"
#include "teach/explain/page.h"

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

struct model_place {
    const char *attention;    /* "cross", "encoder" or "decoder"; NULL: the model's first */
    int64_t layer, head, row; /* from 1; 0: the last layer, the first head, the first row */
};

/* One row of attention, forward and step by step backward, from the loss of the subject's text. */
struct page *model_row_page(const struct subject *subject, const struct model_place *place);

/* Second derivatives of the loss of a model in float64: the curvature along the gradient, and the
   largest eigenvalue of the Hessian. */
struct page *model_hessian_page(struct model_twin *twin);

/* The tape of the loss of the subject's text, drawn: a text for sb_free. */
char *model_tape(const struct subject *subject, drawing_write *write);

#endif
