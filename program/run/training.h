/* A training run: its model, data, progress and files. */
#ifndef SOFTBACK_PROGRAM_RUN_TRAINING_H
#define SOFTBACK_PROGRAM_RUN_TRAINING_H

#include "models/training/checkpoint.h"
#include "models/training/evaluation.h"
#include "program/options/options.h"
#include "program/run/log.h"
#include "program/run/paths.h"
#include <stdio.h>

struct training_kind; /* program/run/kind.h */

enum { MOST_FILES = 64, MOST_WATCHED = 8 /* texts for --report */ };

/* What the command line asks for. */
struct training_request {
    const struct training_kind *kind; /* of the model */
    struct settings settings;
    const struct options *options; /* which of them were given */
    const char *task;              /* a built-in task, or NULL */
    const char *data, *valid;      /* files, or NULL */
    const char *files[MOST_FILES]; /* all that --data was given, `data` first */
    int file_count;
    const char *source_file, *target_file; /* parallel files instead of data, or NULL */
    const char *from;                      /* a model to begin with, or NULL */
    const char *out, *log, *report;        /* report: NULL for none */
    bool resume;
    double heartbeat;              /* seconds of silence after which a rank has failed; 0: never */
    sb_communicator *communicator; /* whose ranks train together; NULL: this one alone */
    int sequence_ranks;            /* the degree of sequence parallelism */
    int head_ranks;                /* the degree of tensor parallelism */
    sb_communicator *model_ranks;  /* the ranks that hold this model */
    sb_communicator *batch_ranks;  /* data parallelism: ranks with the same part of the model */
};

struct training {
    const struct training_request *request; /* outlives it */
    struct settings settings; /* the request's, or those of the model that it continues */
    const char *task;
    void *data; /* trained on and held out, as the kind has it */
    sb_source source, held_source;
    int64_t epoch_items, batch_items; /* pairs, texts or windows; of a batch at most */
    const void *scored;               /* what the kind is scored on; NULL: nothing */
    const sb_pairs *held_pairs;       /* for a report; NULL: the kind has none */
    best_score best;    /* by which the best model is chosen: as suits the kind, or as asked for */
    sb_batch *watched;  /* diagnosed at each evaluation; NULL without --report */
    char *drawn;        /* a held-out text for the report; NULL without one */
    char *drawn_target; /* the output expected for it; NULL: unknown */
    struct checkpoint *loaded; /* of a resumed run or of --from: owns weights and model */
    bool resumed;
    sb_parameters *weights;
    sb_model subject;
    sb_trainer *trainer;
    struct progress progress;
    int64_t ahead; /* the step of a best model that is newer than the resumed state; 0: none */
    const char *out;
    struct path_text state_path, log_path;
    struct guess guess; /* on held-out data */
    FILE *log;          /* NULL on ranks that do not write */
    int lock;           /* of the state, a descriptor; -1: none */
};

/* ---- training.c: opening and closing ---- */

/* Chooses what the command line leaves open: sizes of the model, and the learning rate. */
void training_choose(struct training_request *request);

/* Opens a run: reads data, learns vocabularies and makes the model, or resumes from a checkpoint.
   On failure there is nothing to close; *alike: every rank fails, with the same message.
 */
bool training_open(struct training *training, const struct training_request *request, bool *alike);
void training_close(struct training *training);
/* Prints data, vocabularies and model, in a few lines. */
void training_describe(const struct training *training, FILE *out);
/* Whether this rank writes files and shows progress: the first one does. */
bool training_writes(const struct training *training);
/* Whether it takes part in writing checkpoints: all ranks that hold the first rank's model do. */
bool training_saves(const struct training *training);
/* At the end of a resumed run: whether the steps of a best model that is newer than the state have
   been repeated. */
bool training_check_ahead(const struct training *training);

/* ---- loop.c: steps, evaluations and what they save ---- */

/* Runs a request with all ranks of the job. */
bool training_run(struct training_request *request);
/* Chooses the score that the best model has the best of; fails where the run does not measure it.
 */
bool training_choose_best(struct training *training);
/* Saves the state for --resume. */
bool training_save(struct training *training);
/* Whether a signal asks the run to stop; for the trainer. */
bool training_interrupted(void *unused);

/* ---- output_files.c ---- */

/* Names the files of --out; fails where the run may not write them. */
bool training_open_paths(struct training *training);

/* Locks the state of --out, which exists, until training_unlock; fails while another run holds the
   lock. Where there are no locks, and on ranks that do not write, nothing happens. */
bool training_lock(struct training *training);
void training_unlock(struct training *training);
/* Whether no other run has replaced the state; two that start at the same moment may do that. */
bool training_holds_lock(const struct training *training);

/* The models of --keep: saves that of the current step; removes those before the last ones; prints
   which there are. */
bool training_keep(struct training *training);
bool training_kept_trim(struct training *training);
void training_describe_kept(const struct training *training, FILE *out);

/* Writes the texts of the last step's batch to the first of <out>.bad-batch.tsv, .bad-batch.2.tsv
   and so on that does not exist, and prints its path. */
void training_save_batch(const struct training *training);

#endif
