/*
 * The model of the live page and its training: an encoder-decoder of one layer each, two heads of
 * 16, that learns a task of eight digits with batches of 32 pairs. It is the model of lesson 11:
 * with that lesson's steps, seed and rate both end with the same weights, bit for bit, where both
 * come from a portable build.
 */
#ifndef SOFTBACK_TEACH_PLAYGROUND_TRAINING_H
#define SOFTBACK_TEACH_PLAYGROUND_TRAINING_H

#include "models/text/task.h"
#include "models/training/diagnosis.h"
#include "teach/explain/subject.h"
#include "teach/playground/mistaken.h"

struct training_options {
    sb_task task; /* copy, reverse or sort */
    uint64_t seed;
    double factor; /* extra factor of scores, besides 1 / sqrt D */
    enum mistake mistake;
    int steps; /* over which the learning rate goes down to 0 */
};

/* The attentions of a layer, in the order in which a diagnosis has their heads. */
enum { TRAINING_ENCODER, TRAINING_DECODER, TRAINING_CROSS, TRAINING_ATTENTIONS };

struct training {
    struct training_options options;
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_optimiser *adam;
    sb_data *others;       /* of another seed, */
    const sb_batch *batch; /* of which this batch is observed, and never trained on */
    /* The results of training_observe. */
    struct subject subject;           /* a held-out pair */
    double *map[TRAINING_ATTENTIONS]; /* its weights (H, rows, keys) */
    int64_t rows[TRAINING_ATTENTIONS], keys[TRAINING_ATTENTIONS];
    struct diagnosis diagnosis; /* of the batch */
};

/* False, with a message, when the options make no sense or there is no memory. */
bool training_open(struct training *training, const struct training_options *options);
void training_close(struct training *training); /* one that was never opened is all zeros */

/* One batch forward, backward, and a step of Adam. */
bool training_step(struct training *training, double *loss);

/* Looks at held-out pair `index`: fills subject, maps and diagnosis. */
bool training_observe(struct training *training, int index);

/* The share of right digits in what the model writes for held-out sources. */
bool training_right(const struct training *training, double *share);

#endif
