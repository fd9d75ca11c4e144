/* The tensors of a training state, for the files that write and read checkpoints. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_SAVE_H

#include "models/training/trainer.h"
#include "tensor/safetensors.h"

enum { STATE_TENSORS = 3 };

/* What a training state adds to the parameters: the moments and the moving average. How many. */
int checkpoint_state(const sb_trainer *trainer, sb_named_tensor item[STATE_TENSORS]);

/* What a file says of a source, so that others are noticed. */
uint64_t source_mark(const sb_source *source);

#endif
