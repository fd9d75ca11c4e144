/*
 * The settings of a model and its training, by name: one table for the program's options, the
 * metadata of checkpoints, and what `softback info` prints.
 */
#ifndef SOFTBACK_MODELS_TRAINING_SETTINGS_H
#define SOFTBACK_MODELS_TRAINING_SETTINGS_H

#include "models/field.h"
#include "models/language_model.h"
#include "models/text/documents.h"
#include "models/text_model.h"
#include "models/training/trainer.h"
#include "nn/groups.h"

/* What of a model is trained, and how: parameters that are frozen, groups with a learning rate and
   a decay of their own, and LoRA adapters, as the command line and files name them. */
struct fine_tuning {
    char freeze[FIELD_TEXT_SIZE];  /* patterns, which commas separate */
    char groups[FIELD_TEXT_SIZE];  /* "PATTERN:rate=0.1,decay=0,frozen"; semicolons separate several
                                    */
    int64_t lora;                  /* rank of LoRA adapters; 0: none */
    double lora_alpha;             /* 0: the rank */
    char lora_on[FIELD_TEXT_SIZE]; /* "": "*.query,*.value" */
    uint64_t base; /* with adapters, the fingerprint of the model that they are for */
};

/* Whether the text of the groups can be understood. */
bool fine_tuning_check(const struct fine_tuning *tuning);

/* Before a model is made: its linear layers get the adapters. */
bool fine_tuning_prepare(const struct fine_tuning *tuning, sb_parameters *weights);

/* Groups and freezes the parameters of a model; with adapters, all others are frozen. */
bool fine_tuning_apply(const struct fine_tuning *tuning, sb_parameters *weights);

/* By which score a run chooses its best model. */
typedef enum {
    BEST_AUTO, /* as suits the kind of model and its texts */
    BEST_LOSS,
    BEST_EXACT, /* fewest outputs that equal none of their references */
    BEST_ERROR, /* least edits, as a share of the references' units */
    BEST_BLEU,
    BEST_ACCURACY, /* most texts classified right */
} best_score;

enum { MOST_KEPT = 64 };

struct settings {
    sb_text_model_options model;
    sb_trainer_options trainer;
    sb_data_options data;
    sb_task_options task;
    int64_t steps;          /* of the whole run */
    int64_t evaluate_every; /* steps */
    int64_t evaluate_pairs; /* held-out pairs that are decoded in an evaluation */
    int64_t patience;       /* evaluations without a better one before training stops; 0: never */
    int64_t keep;           /* models of the last evaluations to keep */
    best_score best;
    int64_t vocabulary; /* the most symbols of a vocabulary; 0: no limit */
    sb_units source_units, target_units;
    bool joint_vocabulary; /* one vocabulary for both sides */
    sb_units units;        /* of the texts of a language model or classifier */
    sb_document_cut documents;
    struct fine_tuning tuning;
};

enum { MOST_SETTINGS = 128 };

/* The rows of struct settings, in the order of files. */
extern const struct field settings_fields[];

/* The i-th setting; its name is NULL past the last. */
struct field setting_at(int i);
const char *setting_name(int i);
/* The number of the setting with this name; -1 without one. */
int setting_find(const char *name);
bool setting_is_of(int i, const sb_model_kind *kind);

/* The default values. */
struct settings settings_default(void);

/* The learning rate of a run that gives none: proportional to 1 / sqrt(width) (Vaswani et al.
   2017), with a factor that does well at width 64. */
double settings_usual_rate(const struct settings *settings);

/* Reads the settings of a description (fields_describe), which may be untrusted, with defaults for
 * the others. */
bool settings_read(struct settings *settings, const sb_description *description);

/* As field_write and field_read do. */
bool setting_set(struct settings *settings, int i, const char *text);
struct field_text setting_get(const struct settings *settings, int i);

#endif
