/* The subject of pages on a stored model that reads one text: a language model or a classifier. */
#ifndef SOFTBACK_TEACH_EXPLAIN_TEXT_SUBJECT_H
#define SOFTBACK_TEACH_EXPLAIN_TEXT_SUBJECT_H

#include "teach/explain/subject.h"

struct text_subject {
    const struct checkpoint *checkpoint;
    bool causal;              /* a language model; otherwise a classifier */
    int64_t choices;          /* symbols or labels, one of which the model predicts */
    struct subject_axis axis; /* the text as the model reads it */
    int32_t *ids;             /* begin, unless the model reads running text; the symbols; end, which
                                 is not read but predicted */
    sb_batch *batch;          /* of this text alone */
    const sb_transformer_options *options;
    int layers;
};

/* Encodes a text; fails for models of other kinds. The checkpoint must outlive the subject. */
bool text_subject_open(struct text_subject *subject, const struct checkpoint *checkpoint,
                       const char *text);
void text_subject_close(struct text_subject *subject);

#endif
