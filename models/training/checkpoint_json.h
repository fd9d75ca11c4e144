/* The JSON in a checkpoint's metadata. */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_JSON_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_JSON_H

#include "models/training/checkpoint.h"

/* Where in its run a model was the best one. */
struct best_model {
    int64_t step;
    uint64_t data_hash; /* as in struct progress */
};

/* What the JSON says. */
struct description {
    struct settings settings;
    char *task;
    sb_vocabulary *source, *target; /* one, retained twice, when the vocabulary is joint */
    bool has_fingerprint, has_best, has_state;
    uint64_t fingerprint; /* of all tensors */
    struct best_model best;
    struct progress progress;
    sb_trainer_state state;
};

/* A text for memory_free; fingerprint, best and state are written if there are any. */
char *description_write(const struct description *description);

/* Reads a text that may come from anywhere; on failure there is nothing to free. */
bool description_read(const char *text, struct description *description);
void description_free(struct description *description);

/* Reads the description of a file, and compares the fingerprint of its tensors. A file of an
   earlier version has none: then `fingerprint` is computed. */
bool description_of_file(const char *path, struct description *description);

/* Whether two vocabularies give the same symbols the same ids. */
bool description_same_vocabulary(const sb_vocabulary *a, const sb_vocabulary *b);

#endif
