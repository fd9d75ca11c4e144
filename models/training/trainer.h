/*
 * A trainer: a model, the source of its batches, an optimiser and the stream of dropout, one step
 * at a time.
 *
 * All that it holds is fixed by the options and by how many steps it has taken; sb_trainer_state
 * is what a checkpoint must add to the tensors so that another trainer goes on with the same bits.
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

/* Where the device has graphs, a step whose shape came before is launched at once
   (models/training/replay.h); the bits are the same. Not where ranks hold parts of the model, which
   wait for each other in between. */
typedef enum { SB_GRAPHS_AUTO, SB_GRAPHS_OFF } sb_graphs;

typedef struct {
    uint64_t seed; /* of dropout */
    sb_optimiser_kind optimiser_kind;
    sb_optimiser_options optimiser;
    int64_t accumulate;   /* batches a step, default 1 */
    double average_decay; /* of the moving average of the weights; 0: none */
    sb_graphs graphs;
    sb_communicator *communicator; /* whose ranks share each batch; NULL: this one takes it all */
    int sequence_ranks; /* neighbours among them that share each sequence too; 0: 1, which do not */
} sb_trainer_options;

typedef struct sb_trainer sb_trainer;

/*
 * The model, the source and the communicator must outlive the trainer, which keeps copies of the
 * two structs.
 *
 * Ranks that share batches have the same model, source and options. Each draws the same batch and
 * takes its share of it; the loss and the gradient are those of the whole batch, and after a step
 * every rank has the same weights, bit by bit. How many ranks there are changes a step by rounding
 * only. Where neighbours share sequences too, each holds pieces of them, and attention goes round
 * the ring of these (ops/ops.h). Where the model is cut over ranks of its own, by heads, these take
 * the same share, and the communicator is that of the ranks with the same part of the model, if
 * there are several groups of them. If a step fails on one rank the others wait for it in vain: it
 * is to end the job.
 */
SB_API sb_trainer *sb_trainer_for(const sb_model *model, const sb_source *source,
                                  const sb_trainer_options *options);
/* The same for an encoder-decoder and sentence pairs. */
SB_API sb_trainer *sb_trainer_new(sb_seq2seq *model, sb_data *data,
                                  const sb_trainer_options *options);
SB_API void sb_trainer_free(sb_trainer *trainer);

/* What a step did. */
typedef struct {
    double loss;     /* mean over its targets, in nats */
    double rate;     /* learning rate */
    double norm;     /* of the gradient, before clipping */
    int64_t targets; /* symbols predicted, by all ranks */
    double waited;   /* seconds that this rank spent on summing gradients, and on nothing else */
    int64_t sent;    /* bytes that this rank sent to others */
    const char *without_gradient; /* first step: a parameter that backward did not reach, or NULL */
    bool skipped; /* the gradient was not finite: the weights stay; sb_error() names where */
} sb_trained;

/*
 * One step: forward, backward, update, on as many batches as are accumulated.
 *
 * A gradient that is not finite skips the step and is no failure, up to ten times in a row. A loss
 * that is not finite fails; the message names the operation that first made such a value, and the
 * batch stays readable through sb_trainer_batch and its loss in `trained`. A step that fails leaves
 * no trace, so that it may be tried again.
 */
SB_API bool sb_trainer_step(sb_trainer *trainer, sb_trained *trained);

/* The batch of the last step (the last one of several); belongs to the source. */
SB_API const sb_batch *sb_trainer_batch(const sb_trainer *trainer);
SB_API const sb_model *sb_trainer_subject(const sb_trainer *trainer);
SB_API const sb_source *sb_trainer_source(const sb_trainer *trainer);
/* What sb_trainer_new was given; NULL where another kind of model, or another source, is trained.
 */
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
