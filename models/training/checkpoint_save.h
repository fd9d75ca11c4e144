/* Writing model files, all with checkpoint_write. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H

#include "models/training/checkpoint_json.h"
#include "models/training/trainer.h"
#include "tensor/safetensors.h"

enum { STATE_TENSORS = 4 };

/* The tensors that a training state adds, as long as the gradients: moments and moving average.
   Returns how many. A state of parameters that have taken different numbers of steps has
   "optimiser.steps" too. */
int checkpoint_state(const sb_trainer *trainer, sb_named_tensor item[STATE_TENSORS]);

/* Writes a file of these weights (of the LoRA adapters, if the metadata says so), with a trainer
   also of its state; sets the fingerprint of the
   metadata, and frees their description; NULL for it is a failure that has a message. */
bool checkpoint_write(const char *path, sb_parameters *weights, const sb_trainer *trainer,
                      struct metadata *metadata);

#endif
