/* Pages and drawings of a stored model, most of them of one text. */
#ifndef SOFTBACK_TEACH_EXPLAIN_MODEL_H
#define SOFTBACK_TEACH_EXPLAIN_MODEL_H

#include "models/drawing_graph.h"
#include "models/model_twin.h"
#include "teach/explain/page.h"
#include "teach/explain/subject.h"

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
