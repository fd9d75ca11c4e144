/* Small training runs, of which a test can afford many. */
#ifndef SOFTBACK_TESTS_SUPPORT_SMALL_RUN_H
#define SOFTBACK_TESTS_SUPPORT_SMALL_RUN_H

#include "models/score.h"
#include "models/training/checkpoint.h"
#include "tests/support/test.h"

/* A model of width 8 with one layer on each side, dropout, four pairs a batch, f32. */
struct settings small_settings(void);

struct small_run {
    struct settings settings;
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_trainer *trainer;
    struct checkpoint *loaded; /* of a run that was resumed: owns weights and model */
    void (*forget)(struct checkpoint *loaded);
    bool kept; /* freed at the end of the test, and not to be closed */
};

/* A run on reversing up to five digits, or on pairs. On failure there is nothing to close. */
bool small_run_open(struct small_run *run, const struct settings *settings, const sb_pairs *pairs,
                    sb_dtype dtype);
/* The same, kept by the test, which fails if it cannot be opened. */
struct small_run small_run(const struct settings *settings, const sb_pairs *pairs);
/* The data of such a run; pairs may be NULL. */
sb_data *small_data(const struct settings *settings, const sb_pairs *pairs);
/* Saves the model; with progress also the state (small_resume.c). */
bool small_run_save(const struct small_run *run, const char *path, const struct progress *progress);
/* A run resumed from a checkpoint (small_resume.c). */
bool small_run_resume(struct small_run *run, const char *path, const sb_pairs *pairs);
/* The same for one part of a model that ranks share. */
bool small_run_resume_part(struct small_run *run, const char *path, const sb_pairs *pairs,
                           sb_communicator *ranks);
void small_run_close(struct small_run *run);

/* Takes so many steps, each of which must succeed; the last one's loss. */
double small_run_train(struct small_run *run, int64_t steps);

/* The bits of the weights. */
uint64_t small_run_bits(const struct small_run *run);

/* n pairs of words of up to `longest` letters, reversed. */
sb_pairs *small_pairs(int64_t n, int longest);

#endif
