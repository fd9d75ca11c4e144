/* Reading a model file: its metadata, the model, and the state of its training. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_READ_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_READ_H

#include "models/training/metadata.h"
#include "tensor/safetensors.h"

bool checkpoint_read_metadata(const sb_safetensors *file, struct metadata *metadata);

/* The kind of the file, which must be `wanted` (NULL: any of the library's). */
const sb_model_kind *checkpoint_kind(const struct metadata *metadata, const sb_model_kind *wanted);

/* Whether the fingerprint of the tensors is the one that the metadata name. */
bool checkpoint_is_unchanged(const sb_safetensors *file, const struct metadata *metadata);

/* The dtype of its parameters. */
sb_dtype checkpoint_dtype(const sb_safetensors *file);

/* Where the tensors of a model are. */
struct model_tensors {
    const sb_safetensors *file;
    const sb_safetensors *base; /* what the file has not, if it has adapters alone; or NULL */
    bool new_adapters;          /* adapters that the file lacks keep their initial values */
};

/* The model that the metadata describe, with its parameters. */
bool checkpoint_read_model(sb_model *model, const struct model_tensors *tensors,
                           const sb_model_kind *kind, sb_parameters *weights,
                           const struct metadata *metadata);

/* The weights and the state of a trainer. */
bool checkpoint_read_training(const sb_safetensors *file, sb_trainer *trainer,
                              const sb_trainer_state *state);

#endif
