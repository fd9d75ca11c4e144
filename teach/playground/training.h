/*
 * The model of the live page and its training: an encoder-decoder of one layer each, two heads of
 * 16, that learns a task of eight digits with batches of 32 pairs. It is the model of lesson 11:
 * with that lesson's steps, seed and rate both end with the same weights, bit for bit, where both
 * come from a portable build.
 */
#ifndef SOFTBACK_TEACH_PLAYGROUND_TRAINING_H
#define SOFTBACK_TEACH_PLAYGROUND_TRAINING_H

#include "models/seq2seq.h"
#include "models/text/task.h"
#include "models/training/diagnosis.h"
#include "nn/optimiser.h"
#include "teach/playground/observation.h"

struct training_options {
    sb_task task; /* copy, reverse or sort */
    uint64_t seed;
    double factor;    /* extra factor of scores, besides 1 / sqrt D */
    const char *rule; /* of the gradient of softmax (rule.h); NULL or "": the library's kernel */
    int steps;        /* over which the learning rate goes down to 0 */
    double rate;      /* the highest learning rate; 0: 0.01 */
};

enum { TRAINING_OUTPUTS = 3 };

struct training {
    struct training_options options;
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_optimiser *adam;
    sb_data *others;       /* held-out pairs, */
    const sb_batch *batch; /* of which this batch is observed */
    /* The results of training_observe. */
    struct subject subject; /* a held-out pair */
    struct observation seen;
    struct diagnosis diagnosis;     /* of the batch */
    sb_task_pair *pairs;            /* this pair and those that follow, TRAINING_OUTPUTS in all */
    char *output[TRAINING_OUTPUTS]; /* what the model writes for their sources */
};

/* False, with a message, when the options make no sense or there is no memory. */
bool training_open(struct training *training, const struct training_options *options);
void training_close(struct training *training); /* one that was never opened is all zeros */

/* One batch forward, backward, and a step of Adam. */
bool training_step(struct training *training, double *loss);

/* From the next step on, another rule for the gradient of softmax. */
bool training_change_rule(struct training *training, const char *rule);

/* Looks at held-out pair `index`, and at what the model makes of it now. */
bool training_observe(struct training *training, int index);

/* The share of right digits in what the model writes for held-out sources. */
bool training_right(const struct training *training, double *share);

#endif
