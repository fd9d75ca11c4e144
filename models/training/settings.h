/*
 * The settings of a model and its training, by name: one table behind the program's options, the
 * metadata of checkpoints, and what `softback info` prints.
 */
#ifndef SOFTBACK_MODELS_TRAINING_SETTINGS_H
#define SOFTBACK_MODELS_TRAINING_SETTINGS_H

#include "models/training/trainer.h"

struct settings {
    sb_seq2seq_options model;
    sb_trainer_options trainer;
    sb_data_options data;
    sb_task_options task;
    int64_t steps;          /* how many there are in all */
    int64_t evaluate_every; /* steps */
    int64_t evaluate_pairs; /* held-out pairs that are decoded in an evaluation */
    int64_t patience;       /* evaluations without a better one before training stops; 0: never */
    int64_t vocabulary;     /* the most symbols of a vocabulary; 0: no limit */
    sb_units source_units, target_units;
    bool joint_vocabulary; /* one vocabulary for both sides */
};

enum setting_type { SETTING_COUNT, SETTING_NUMBER, SETTING_CHOICE, SETTING_FLAG };

enum setting_group { SETTING_OF_MODEL, SETTING_OF_TRAINING, SETTING_OF_DATA };

struct setting {
    const char *name; /* "feed-forward" */
    enum setting_group group;
    enum setting_type type;
    size_t offset;
    double least, most;         /* of a count or number */
    const char *const *choices; /* of a choice, in the order of its enum, ended by NULL */
    const char *help;
};

enum { MOST_SETTINGS = 64 }; /* so that sets of them are bits of a word */

/* The i-th setting; NULL past the last. */
const struct setting *setting_at(int i);
const struct setting *setting_find(const char *name);

/* Sensible values for training from nothing. */
struct settings settings_default(void);

/* Sets one from text ("true" or "false" for a flag); the message names what was expected. */
bool setting_set(struct settings *settings, const struct setting *setting, const char *text);
/* Its value as text; numbers so that reading them gives the same bits. */
struct setting_text {
    char text[40];
};
struct setting_text setting_get(const struct settings *settings, const struct setting *setting);

#endif
