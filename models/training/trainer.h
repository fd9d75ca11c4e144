/*
 * A trainer: it runs training steps with a model, a source of batches, an optimiser and the random
 * stream of dropout.
 *
 * The options and the number of steps determine its state. A checkpoint stores the tensors and
 * sb_trainer_state, so that another trainer continues with the same bits.
 */
#ifndef SOFTBACK_MODELS_TRAINING_TRAINER_H
#define SOFTBACK_MODELS_TRAINING_TRAINER_H

#include "../../nn/average.h"
#include "../../nn/optimiser.h"
#include "../../tensor/communicator.h"
#include "../data/data.h"
#include "../model.h"
#include "../seq2seq.h"

typedef enum { SB_OPTIMISER_ADAM, SB_OPTIMISER_ADAMW, SB_OPTIMISER_SGD } sb_optimiser_kind;

/* If the device has graphs, a step whose shapes occurred before is launched as one graph
   (models/training/replay.h), with the same bits. Not with tensor or sequence parallelism, where
   ranks wait for each other during a step. */
typedef enum { SB_GRAPHS_AUTO, SB_GRAPHS_OFF } sb_graphs;

typedef struct {
    uint64_t seed; /* of dropout */
    sb_optimiser_kind optimiser_kind;
    sb_optimiser_options optimiser;
    int64_t accumulate;   /* batches a step, default 1 */
    int64_t shares;       /* of a batch, for threads (nn/shares.h); 0: chosen, 1: none */
    double average_decay; /* of the moving average of the weights; 0: none */
    sb_graphs graphs;
    sb_communicator *communicator; /* data parallelism over its ranks; NULL: this one alone */
    int sequence_ranks;            /* the degree of sequence parallelism, over neighbours; 0: 1 */
    /* Asked after each batch of a step but the last: true gives up the step. NULL: never. */
    bool (*stop)(void *stop_context);
    void *stop_context;
} sb_trainer_options;

typedef struct sb_trainer sb_trainer;

/*
 * The model, the source and the communicator must outlive the trainer, which keeps copies of the
 * two structs.
 *
 * Data parallelism: ranks have the same model, source and options. Each takes a share of the same
 * batch; the loss and the gradient are those of the whole batch, and after a step every rank has
 * the same weights, bit by bit. The number of ranks changes a step by rounding only. Sequence
 * parallelism: neighbours hold pieces of each sequence and compute ring attention (ops/ops.h).
 * Tensor parallelism: ranks that hold parts of one model, by heads, take the same share, and the
 * communicator has the ranks with the same part of the model. A rank whose step fails must end the
 * job, as the others wait for it.
 */
SB_API sb_trainer *sb_trainer_for(const sb_model *model, const sb_source *source,
                                  const sb_trainer_options *options);
/* A trainer for an encoder-decoder and sentence pairs. */
SB_API sb_trainer *sb_trainer_new(sb_seq2seq *model, sb_data *data,
                                  const sb_trainer_options *options);
SB_API void sb_trainer_free(sb_trainer *trainer);

/* What a step did. */
typedef struct {
    double loss;                  /* mean over its targets, in nats */
    double rate;                  /* learning rate */
    double norm;                  /* of the gradient, before clipping */
    int64_t targets;              /* symbols predicted, by all ranks */
    double waited;                /* seconds that this rank spent only on summing gradients */
    int64_t sent;                 /* bytes that this rank sent to others */
    const char *without_gradient; /* first step: a parameter that backward did not reach, or NULL */
    bool stopped; /* sb_trainer_step failed since the option `stop` gave up the step */
    bool skipped; /* the gradient was not finite: the weights stay; sb_error() names where */
} sb_trained;

/*
 * One step: forward, backward, update, on as many batches as are accumulated.
 *
 * A gradient that is not finite skips the step and is no failure, up to ten times in a row. A loss
 * that is not finite fails; the message names the operation that first made such a value, and the
 * batch stays readable through sb_trainer_batch and its loss in `trained`. A step that fails
 * changes nothing and can be repeated.
 */
SB_API bool sb_trainer_step(sb_trainer *trainer, sb_trained *trained);

/* The batch of the last step (the last one of several); belongs to the source. */
SB_API const sb_batch *sb_trainer_batch(const sb_trainer *trainer);
SB_API const sb_model *sb_trainer_subject(const sb_trainer *trainer);
SB_API const sb_source *sb_trainer_source(const sb_trainer *trainer);
/* The arguments of sb_trainer_new; NULL for other kinds of models or sources. */
SB_API sb_seq2seq *sb_trainer_model(const sb_trainer *trainer);
SB_API sb_data *sb_trainer_data(const sb_trainer *trainer);
SB_API sb_optimiser *sb_trainer_optimiser(const sb_trainer *trainer);
SB_API sb_average *sb_trainer_average(const sb_trainer *trainer); /* NULL without one */
SB_API int64_t sb_trainer_steps(const sb_trainer *trainer);       /* taken or skipped */

typedef struct {
    int64_t steps, skipped_in_a_row, updates, average_updates;
    uint64_t random_position;
    sb_data_position data;
    sb_plateau plateau;
} sb_trainer_state;

SB_API sb_trainer_state sb_trainer_save(const sb_trainer *trainer);
SB_API bool sb_trainer_restore(sb_trainer *trainer, const sb_trainer_state *state);

#endif
