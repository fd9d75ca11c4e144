/*
 * A diagnosis of a model on one batch: the norm of each parameter's gradient and a histogram of its
 * elements, and for each attention head the evenness of its weights and the share of its rows that
 * are saturated.
 *
 * A row of n >= 2 weights a is saturated when the Jacobian J of its softmax is so small that hardly
 * any gradient reaches its scores: |J| < 0.01, where
 *
 *     |J|^2 = sum a^2 - 2 sum a^3 + (sum a^2)^2
 *
 * Its evenness is its entropy over ln n: 1 where all weights are equal, 0 where one has all.
 */
#ifndef SOFTBACK_MODELS_TRAINING_DIAGNOSIS_H
#define SOFTBACK_MODELS_TRAINING_DIAGNOSIS_H

#include "models/model.h"

/* A histogram counts absolute values by powers of ten: 0 itself; below 1e-8; from 1e-8, from 1e-7,
   ..., from 0.1; 1 and more. NaN is not counted. */
enum { DIAGNOSIS_BINS = 11 };

struct diagnosis {
    int64_t parameters, heads;
    double *gradient;   /* of each parameter, in the set's order */
    int64_t *histogram; /* DIAGNOSIS_BINS numbers of each parameter */
    /* A number for each head, in the order of the model's maps: those of the encoder's layers, then
       of the decoder's self-attention, then of its cross-attention. Means over the rows of the
       batch with at least two keys. */
    double *saturated, *evenness;
};

/* Runs forward and backward without dropout. The parameters' gradients are cleared. */
bool diagnosis_make(struct diagnosis *diagnosis, const sb_model *model, const sb_batch *batch);
/* Only what is of heads. To be freed also after a failure. */
bool diagnosis_make_heads(struct diagnosis *diagnosis, const sb_attentions *attentions);
void diagnosis_free(struct diagnosis *diagnosis);

#endif
