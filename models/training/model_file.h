/*
 * Files of models of any kind, and of their training, in the format of safetensors.
 *
 * The parameters have their names; the metadata's key "softback" contains the model's kind and
 * description, and with a training state its counters. Moments of the optimiser, with keys of its
 * own, and averages are further tensors. Equal training gives equal bytes.
 */
#ifndef SOFTBACK_MODELS_TRAINING_MODEL_FILE_H
#define SOFTBACK_MODELS_TRAINING_MODEL_FILE_H

#include "../model.h"
#include "trainer.h"

/* Writes the model. An existing file is replaced atomically. All ranks that hold parts of a model
   save it together. */
SB_API bool sb_model_save(const sb_model *model, const char *path);

/* Reads a model of this kind (NULL: the file's, of the library's) from a file that may be untrusted
   into an empty set of weights, which after a failure can only be freed. */
SB_API bool sb_model_load(sb_model *model, const sb_model_kind *kind, sb_parameters *weights,
                          const char *path);

/* Writes the model and the state of its training, from which a trainer of the same model, source
   and options continues with the same bits. With data parallelism one rank calls it, with tensor
   parallelism all that hold parts of one model. */
SB_API bool sb_checkpoint_save(const sb_trainer *trainer, const char *path);

/* Puts the weights and the state of such a file into the trainer. Fails when the description
   of the model or the data differs; after a failure the trainer can only be freed. */
SB_API bool sb_checkpoint_resume(sb_trainer *trainer, const char *path);

#endif
