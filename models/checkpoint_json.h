/* The JSON in a checkpoint's metadata. */
#ifndef SOFTBACK_MODELS_CHECKPOINT_JSON_H
#define SOFTBACK_MODELS_CHECKPOINT_JSON_H

#include "models/checkpoint.h"

/* What the JSON says. */
struct description {
    struct settings settings;
    char *task;
    sb_vocabulary *source, *target; /* one, retained twice, when the vocabulary is joint */
    bool has_state;
    struct progress progress;
    sb_trainer_state state;
};

/* A text for memory_free; the state is written if has_state. */
char *description_write(const struct description *description);

/* Reads a text that may come from anywhere; on failure there is nothing to free. */
bool description_read(const char *text, struct description *description);
void description_free(struct description *description);

#endif
