/* A run of training: what is trained, on what, how it is going, and its files. */
#ifndef SOFTBACK_PROGRAM_TRAINING_H
#define SOFTBACK_PROGRAM_TRAINING_H

#include "models/training/checkpoint.h"
#include "models/training/evaluation.h"
#include <stdio.h>

/* What the command line asks for. */
struct training_request {
    struct settings settings;
    uint64_t given;                        /* bit i: setting i was given */
    const char *task;                      /* a built-in task, or NULL */
    const char *data, *valid;              /* TSV files, or NULL */
    const char *source_file, *target_file; /* parallel files instead of data, or NULL */
    const char *out, *log, *report;        /* report: NULL for none */
    bool resume;
    bool threads_given;
    double heartbeat;              /* seconds of silence after which a rank is given up; 0: never */
    sb_communicator *communicator; /* whose ranks train together; NULL: this one alone */
    int sequence_ranks;            /* that share each sequence */
    int head_ranks;                /* that share the model, by heads */
    sb_communicator *heads;        /* of these */
    sb_communicator *batches;      /* of the ranks with the same part of it, which share batches */
};

struct training {
    struct settings settings;
    const char *task;
    sb_communicator *communicator, *heads, *batches; /* the request's */
    int sequence_ranks, head_ranks;                  /* the request's */
    sb_pairs *read;                                  /* as the files have them; NULL with a task */
    sb_pairs *rest;   /* of them what is trained on, for want of --valid; else NULL */
    sb_pairs *held;   /* what is evaluated on */
    sb_pairs *sample; /* of that what is decoded, if not all; whole sources, with all their pairs */
    sb_data *data, *held_data;
    sb_batch *watched;         /* diagnosed at each evaluation; NULL without --report */
    struct checkpoint *loaded; /* of a resumed run: owns weights and model */
    sb_parameters *weights;
    sb_model subject;
    sb_seq2seq *model; /* the subject */
    sb_trainer *trainer;
    struct progress progress;
    int64_t ahead; /* the step of a best model that is newer than the state gone on from; 0: none */
    char *out, *state_path, *log_path;
    FILE *log; /* NULL on ranks that do not write */
};

/* "model.safetensors" and ".state" make "model.state.safetensors"; an ending, if given, replaces
   the path's own. NULL without memory; for memory_free. */
char *path_beside(const char *out, const char *mark, const char *ending);

/* Whether the setting of this name was given. */
bool setting_given(const struct training_request *request, const char *name);

/* Chooses what the command line leaves open: sizes of the model, and the learning rate. */
void training_choose(struct training_request *request);

/* Opens a run: reads data, learns vocabularies, makes the model, or takes up where a checkpoint
   stopped. On failure there is nothing to close; *alike: every rank fails, with the same message.
 */
bool training_open(struct training *training, const struct training_request *request, bool *alike);
void training_close(struct training *training);

/* Whether this rank writes files and shows progress: the first one does. */
bool training_writes(const struct training *training);

/* Whether it has a part in writing checkpoints: so do those that share the model with the first. */
bool training_saves(const struct training *training);

/* The first held-out pair, from number `from` on, that a report can draw; -1 when there is none. */
int64_t training_short_pair(const struct training *training, int64_t from);
/* Opens the watched batch; notes its diagnosis in the log. */
bool training_watch(struct training *training);
bool training_diagnose(struct training *training);

/* Of a resumed run: whether the best model's file is there and is what the state says, or newer and
   of this run; sets `ahead`. */
bool training_check_best(struct training *training);
/* At the end: whether the steps of such a newer model have been repeated. */
bool training_check_ahead(const struct training *training);

/* Its parts: reads the texts and holds some out; makes batches of them. */
bool training_open_texts(struct training *training, const struct training_request *request);
bool training_open_data(struct training *training);
/* The most symbols of a side: as the settings have it, or as positions are learned, which must also
   do for the symbol that begins a target. */
int64_t training_longest(const struct training *training);
/* The whole run, with all ranks of its job, as the request says; the program's exit status. */
int training_run(struct training_request *request);

/* What is trained on; NULL with a task. */
const sb_pairs *training_pairs(const struct training *training);

/* What was found: data, vocabularies, model, in a few lines. */
void training_describe(const struct training *training, const struct training_request *request,
                       FILE *out);

struct evaluated {
    double loss, error; /* share of sources that were not decoded as any of their references */
    bool best;
};

/* Evaluates (with averaged weights, if there are), saves the model if it is the best so far, and
   the state. */
bool training_evaluate(struct training *training, struct evaluated *evaluated);
/* Saves the state, to be resumed from. */
bool training_save(struct training *training);

/* "<out>.bad-batch.tsv", or with a number from 2 on; for memory_free. NULL without memory. */
char *training_bad_batch(const struct training *training, int number);
/* Writes the texts of the last step's batch to the first of these files that is not there yet; its
   path, for sb_free, or NULL. */
char *training_save_batch(const struct training *training);

/* `count` pairs of a part of a built-in task. */
sb_pairs *training_task_pairs(const char *task, const struct settings *settings, sb_part part,
                              int64_t count);

/* Whether an evaluation is due after this many steps, and whether all is done. */
bool training_evaluation_due(const struct training *training);
bool training_finished(const struct training *training);

#endif
