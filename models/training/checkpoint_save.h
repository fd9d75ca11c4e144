/* What a training state adds to a model file. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H

#include "models/training/metadata.h"
#include "models/training/trainer.h"
#include "tensor/safetensors.h"

enum { STATE_TENSORS = 4 };

/* The tensors that a training state adds, as long as the gradients: moments and moving average.
   Returns how many. A state of parameters that have taken different numbers of steps has
   "optimiser.steps" too. */
int checkpoint_state(const sb_trainer *trainer, sb_named_tensor item[STATE_TENSORS]);

#endif
