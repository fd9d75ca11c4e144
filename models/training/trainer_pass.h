/* Forward and backward of one batch: as a graph that is replayed, in shares, or operation by
   operation. */
#ifndef SOFTBACK_MODELS_TRAINING_TRAINER_PASS_H
#define SOFTBACK_MODELS_TRAINING_TRAINER_PASS_H

#include "autograd/watch.h"
#include "models/model.h"
#include "models/training/replay.h"

struct trainer_pass {
    const sb_model *model;
    const sb_batch *batch;
    bool mean;                       /* of the loss, or its sum */
    int64_t shares;                  /* 0: chosen (batch_shares) */
    sb_communicator *ring;           /* for sequence parallelism; NULL: none */
    const struct listener *listener; /* hears of gradients as they become complete; NULL: none */
    sb_random random;                /* of dropout: moves on */
    double loss;                     /* the result */
};

/* Adds to the gradients of the model's weights. replay: NULL for none. */
bool trainer_pass_run(struct trainer_pass *pass, struct replay *replay);

#endif
