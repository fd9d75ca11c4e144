/*
 * Checkpoints: a model, optionally with the state of its training, in one safetensors file.
 *
 * The parameters have their dotted names. A training state adds the tensors and the metadata of
 * sb_optimiser_save (nn/parameters_file.h, written by nn/optimiser_file.c), and "average.NAME" for
 * each parameter that is not frozen. The metadata's key "softback" contains JSON: format, the
 * model's kind, settings by name, vocabularies or labels, the task, the fingerprint of all tensors
 * (nn/fingerprint.h), of adapters that of the model that they are for, and the counters of the
 * state, or the step of a best model. There is no time, host, path, thread or rank count, so equal
 * training gives equal bytes. A file is opened once and each tensor read once: the fingerprint is
 * of what was read. Later versions read the models of format 3; files of other formats are refused.
 */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_H

#include "models/training/settings.h"
#include "nn/stored.h"

/* The models that --keep has written and not removed yet, in rising order of their steps: one more
   than it keeps, until the state that follows is saved. */
struct kept {
    int count;
    struct {
        int64_t step;
        uint64_t fingerprint;
    } model[MOST_KEPT + 1];
};

/* The progress of training, in addition to the state of the trainer. */
struct progress {
    int64_t evaluations;
    sb_evaluation best;        /* the best evaluation */
    int64_t best_step;         /* its step; 0: none yet */
    int64_t waited;            /* evaluations since then */
    uint64_t data_hash;        /* of the training and held-out texts, whatever the settings */
    uint64_t held_hash;        /* of the held-out texts alone; 0: unknown */
    uint64_t source_hash;      /* of the trainer's source, with how it is cut into batches */
    uint64_t best_fingerprint; /* of the best model's file; 0: none yet */
    struct kept kept;
    bool finished;
};

/* A model read from a file, with all that belongs to it. */
struct checkpoint {
    struct settings settings;
    uint64_t fingerprint; /* that its file names */
    char *task;           /* "dates", or "" for pairs from files */
    sb_parameters *weights;
    sb_model subject;
    bool has_state; /* the two below are set */
    struct progress progress;
    sb_trainer_state state;
    struct stored_file file; /* of one to be resumed: open until then */
};

/* What to load of a file, and for what. */
struct checkpoint_options {
    const sb_model_kind *kind; /* the kind that the model must be of; NULL: any of the library's */
    const char *base; /* of LoRA adapters: the file of the model that they are for; NULL: the file
                         has a whole model */
    sb_communicator *ranks;          /* they hold parts of the model, each reads its own; or NULL */
    const struct settings *training; /* the model begins another training with these settings, and
                                        with new adapters if they ask for these; NULL: it has its
                                        own. Settings of the model itself are always the file's. */
    bool resumes; /* checkpoint_resume reads the state, and compares the fingerprint */
};

/* Reads a file that may be untrusted; to be freed with checkpoint_free. Options may be NULL. */
struct checkpoint *checkpoint_open(const char *path, const struct checkpoint_options *options);
void checkpoint_free(struct checkpoint *checkpoint);

/* Puts the state of a file that was opened to be resumed into a trainer made for its model. After a
   failure both can only be freed. */
bool checkpoint_resume(struct checkpoint *checkpoint, sb_trainer *trainer);

/* The hash of a source in files, to detect other data. */
uint64_t checkpoint_source_hash(const sb_source *source);

/* What to save beside a model, and how. */
struct checkpoint_contents {
    const struct settings *settings; /* as they were given; NULL: the model's own alone */
    const char *task;                /* NULL: "" */
    const sb_trainer *trainer;       /* its state is saved too; NULL: the model alone */
    const struct progress *progress; /* of a trainer or a best model */
    bool best;                       /* the model is the best one so far, of progress->best_step */
    bool is_new; /* fail where the file exists, unless it has the same parameters */
};

/* Writes a file, and stores the fingerprint of its tensors, unless NULL. If ranks hold parts of the
   model, all of them call it and the first writes the whole. */
bool checkpoint_save(const char *path, const sb_model *model,
                     const struct checkpoint_contents *contents, uint64_t *fingerprint);

/* Makes the parameters of `into` the mean of its own and those of n more files, which must be of
   the same kind: the same model's settings and vocabularies. */
bool checkpoint_average(struct checkpoint *into, int n, const char *const paths[]);

#endif
