/*
 * Files of models of any kind, and of their training, in the format of safetensors.
 *
 * The parameters stand under their names; the metadata's one key, "softback", holds the kind and
 * the model's description, and with training state its counters. Moments of the optimiser and
 * averages are tensors beside the parameters. Equal training gives equal bytes.
 */
#ifndef SOFTBACK_MODELS_TRAINING_MODEL_FILE_H
#define SOFTBACK_MODELS_TRAINING_MODEL_FILE_H

#include "../model.h"
#include "trainer.h"

/* Writes the model. An old file of this path is replaced at once or not at all. A model that is cut
   over ranks is saved by all of them together. */
SB_API bool sb_model_save(const sb_model *model, const char *path);

/* Reads a model of this kind (NULL: of one of the library's, as the file says) from a file that may
   come from anywhere, into an empty set of weights, which after a failure can only be freed. */
SB_API bool sb_model_load(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                          const char *path);

/* Writes the model and the state of its training, from which a trainer of the same model, source
   and options goes on with the same bits. Of ranks that share batches one calls it; of those that
   share the model, all that hold parts of one. */
SB_API bool sb_checkpoint_save(const sb_trainer *trainer, const char *path);

/* Puts the weights and the state of such a file into the trainer. Fails when the file is of a model
   that is described otherwise, or of other data; after a failure the trainer can only be freed. */
SB_API bool sb_checkpoint_resume(sb_trainer *trainer, const char *path);

#endif
