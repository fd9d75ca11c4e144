/* A copy of a subject's model in a chosen real dtype, without bf16 in its layers, whose weights may
   be changed. */
#ifndef SOFTBACK_TEACH_REPORT_TWIN_H
#define SOFTBACK_TEACH_REPORT_TWIN_H

#include "teach/explain/subject.h"

struct twin {
    sb_parameters *weights;
    sb_seq2seq *model;
    const sb_batch *batch; /* the subject's */
};

/* To be closed also after a failure. */
bool twin_open(struct twin *twin, const struct subject *subject, sb_dtype dtype);
void twin_close(struct twin *twin);

/* Leaves the gradients of the pair's loss in the weights. */
bool twin_backward(struct twin *twin);
/* (L(w + h) - L(w - h)) / 2h for one element of a weight, which is put back; h is relative to
   max(1, |w|). */
bool twin_difference(struct twin *twin, sb_tensor *w, int64_t i, double h, double *difference);

#endif
