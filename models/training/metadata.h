/* The JSON in a checkpoint's metadata. */
#ifndef SOFTBACK_MODELS_TRAINING_METADATA_H
#define SOFTBACK_MODELS_TRAINING_METADATA_H

#include "models/training/checkpoint.h"

/* The evaluation at which a model was the best one. */
struct best_model {
    int64_t step;
    uint64_t data_hash; /* as in struct progress */
};

/* The contents of the JSON. */
struct metadata {
    sb_description *model; /* its kind, settings by name, vocabularies */
    char *task;
    bool has_best, has_state, has_base;
    uint64_t fingerprint; /* of all tensors */
    uint64_t base;        /* fingerprint of the model that the LoRA adapters are for */
    bool adapters;        /* the file has these alone */
    struct best_model best;
    struct progress progress;
    sb_trainer_state state;
};

/* A text for memory_free; base, best and state are written if there are any. */
char *metadata_write(const struct metadata *metadata);

/* Reads a text that may be untrusted; on failure there is nothing to free. */
bool metadata_read(const char *text, struct metadata *metadata);
void metadata_free(struct metadata *metadata);

/* Reads those of an open file; of a path, and compares the fingerprint of the file's tensors. */
bool metadata_of(const sb_safetensors *file, struct metadata *metadata);
bool metadata_of_file(const char *path, struct metadata *metadata);

#endif
