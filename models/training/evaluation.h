/* Evaluation of a model on data that it was not trained on. */
#ifndef SOFTBACK_MODELS_TRAINING_EVALUATION_H
#define SOFTBACK_MODELS_TRAINING_EVALUATION_H

#include "../../tensor/communicator.h"
#include "../data/data.h"
#include "../model.h"
#include "../seq2seq.h"

/*
 * The mean cost over one epoch of a source and, if `held` is not NULL and the kind has a score, the
 * scores on `held`. Ranks (NULL: this one alone) share the batches; the results have the same bits
 * for any number of ranks. Fails also when the loss is not finite.
 */
SB_API bool sb_evaluate(const sb_model *model, const sb_source *source, const void *held,
                        sb_communicator *ranks, sb_evaluation *evaluation);

/* The mean cross entropy of an encoder-decoder, in nats a symbol, over one epoch of the data; NaN
   on failure, and when the loss is not finite. */
SB_API double sb_evaluate_loss(const sb_seq2seq *model, sb_data *data);

#endif
