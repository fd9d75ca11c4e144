/*
 * Checkpoints: a model, optionally with the state of its training, in one safetensors file.
 *
 * The parameters have their dotted names. A training state adds "average", "optimiser.moment.0" and
 * ".1", each as long as all parameters together that are not frozen. The metadata's one key,
 * "softback", contains JSON: format, the model's kind, settings by name, the vocabularies, the
 * task, the fingerprint of all tensors (models/training/fingerprint.h), and the counters of the
 * state, or the step of a best model. There is no time, host, path, thread or rank count, so equal
 * training gives equal bytes. Loading compares the fingerprint. Later versions read format 3; files
 * of other formats are refused.
 */
#ifndef SOFTBACK_MODELS_TRAINING_CHECKPOINT_H
#define SOFTBACK_MODELS_TRAINING_CHECKPOINT_H

#include "models/training/settings.h"

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
    uint64_t data_hash;        /* of the training and held-out texts, to detect other data */
    uint64_t source_hash;      /* of the trainer's source, for sb_checkpoint_resume; 0: data_hash */
    uint64_t best_fingerprint; /* of the best model's file; 0: none yet */
    struct kept kept;
    bool finished;
};

/* A model read from a file, with all that belongs to it. */
struct checkpoint {
    struct settings settings;
    uint64_t fingerprint; /* of the tensors of its file */
    char *task;           /* "dates", or "" for pairs from files */
    sb_parameters *weights;
    sb_model subject;
    bool has_state; /* the two below are set, and checkpoint_resume can be called */
    struct progress progress;
    sb_trainer_state state;
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
};

/* Reads a file that may be untrusted; to be freed with checkpoint_free. Options may be NULL. */
struct checkpoint *checkpoint_open(const char *path, const struct checkpoint_options *options);
void checkpoint_free(struct checkpoint *checkpoint);

/* Puts the stored state, of the file that `checkpoint` was read from, into a trainer made for its
   model. */
bool checkpoint_resume(const struct checkpoint *checkpoint, const char *path, sb_trainer *trainer);

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
