/* Pages and drawings of a stored model and one text. */
#ifndef SOFTBACK_TEACH_EXPLAIN_MODEL_H
#define SOFTBACK_TEACH_EXPLAIN_MODEL_H

#include "models/drawing_graph.h"
#include "teach/explain/page.h"
#include "teach/explain/subject.h"

struct model_place {
    enum attention_kind kind;
    int64_t layer, head, row; /* from 1; 0: the last layer, the first head, the first row */
};

/* One row of attention, forward and step by step backward, from the loss of the subject's pair. */
struct page *model_row_page(const struct subject *subject, const struct model_place *place);

/* The tape of that loss, drawn: a text for sb_free. */
char *model_tape(const struct subject *subject, drawing_write *write);

#endif
