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
    uint64_t data_hash;        /* of the training and held-out pairs, to detect other data */
    uint64_t best_fingerprint; /* of the best model's file; 0: none yet */
    struct kept kept;
    bool finished;
};

/* A model read from a file, with all that belongs to it. */
struct checkpoint {
    struct settings settings;
    char *task; /* "dates", or "" for pairs from files */
    sb_parameters *weights;
    sb_model subject;
    sb_seq2seq *model; /* the subject; NULL where that is of another kind */
    bool has_state;    /* the two below are set, and checkpoint_resume can be called */
    struct progress progress;
    sb_trainer_state state;
};

/* Writes the model; with a trainer also its state. `progress` may be NULL without one. If ranks
   hold parts of the model, all of them call it and the first writes the whole. */
bool checkpoint_save_model(const char *path, const struct settings *settings, const char *task,
                           const sb_model *model, const sb_trainer *trainer,
                           const struct progress *progress);
/* The same of an encoder-decoder. */
bool checkpoint_save(const char *path, const struct settings *settings, const char *task,
                     const sb_seq2seq *model, const sb_trainer *trainer,
                     const struct progress *progress);

/* Writes the model as the best one so far, that of step progress->best_step, and stores its
   fingerprint in `progress`. */
bool checkpoint_save_best(const char *path, const struct settings *settings, const char *task,
                          const sb_model *model, struct progress *progress);

/* Writes the model to a file that does not exist: fails where it does, unless that has the
   same parameters. Stores its fingerprint, if that is wanted. */
bool checkpoint_save_new(const char *path, const struct settings *settings, const char *task,
                         const sb_model *model, uint64_t *fingerprint);

/* Reads an encoder-decoder from a file that may be untrusted; to be freed with checkpoint_free. */
struct checkpoint *checkpoint_load(const char *path);
/* The same for a model that is cut over ranks, each of which reads its part. */
struct checkpoint *checkpoint_load_part(const char *path, sb_communicator *ranks);
/* The same for a model of this kind, or of any of the library's (NULL); ranks may be NULL. */
struct checkpoint *checkpoint_load_kind(const char *path, const sb_model_kind *kind,
                                        sb_communicator *ranks);
/* The same for a model of any of the library's kinds. */
struct checkpoint *checkpoint_load_any(const char *path);
/* The same for a file of LoRA adapters, whose base is in another one (NULL: a whole model). */
struct checkpoint *checkpoint_load_adapted(const char *path, const char *base,
                                           const sb_model_kind *kind);
/* The model of a file as the beginning of another training, whose settings it gets, with new
   adapters if they ask for these. The settings of the model itself are the file's. */
struct checkpoint *checkpoint_load_from(const char *path, const struct settings *training,
                                        sb_communicator *ranks);
void checkpoint_free(struct checkpoint *checkpoint);

/* Puts the stored state, of the file that `checkpoint` was loaded from, into a trainer made for its
   model. */
bool checkpoint_resume(const struct checkpoint *checkpoint, const char *path, sb_trainer *trainer);

/* Makes the parameters of `into` the mean of its own and those of n more files, which must be of
   the same kind: the same model's settings and vocabularies. */
bool checkpoint_average(struct checkpoint *into, int n, const char *const paths[]);

#endif
