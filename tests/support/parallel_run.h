/* Without Criterion, since a process under mpirun uses it too: a short run of training on the ranks
 * of a communicator, and how much two of them differ. */
#ifndef SOFTBACK_TESTS_SUPPORT_PARALLEL_RUN_H
#define SOFTBACK_TESTS_SUPPORT_PARALLEL_RUN_H

#include "models/data/windows.h"
#include "models/training/settings.h"

enum { PARALLEL_STEPS = 20 };

struct parallel_run {
    bool ok;
    char message[256]; /* if not */
    int steps;
    double loss[PARALLEL_STEPS];
    int64_t size;
    double *gradient; /* of the first step, for the mean loss */
    uint64_t bits;    /* of all weights at the end */
    uint64_t position;
};

/* Two layers on each side, 7 items a batch, windows of 6 symbols, no dropout. */
struct settings parallel_settings(void);

struct parallel_job {
    const char *kind; /* as for parallel_parts_open */
    const struct settings *settings;
    const sb_pairs *pairs;
    sb_dtype dtype;
    int steps; /* at most PARALLEL_STEPS */
    int heads; /* neighbouring ranks that share the heads (tensor parallelism); 0: 1 */
};

/* Trains; the communicator may be NULL, for one rank. Each of its ranks must call it. */
void parallel_run_make(struct parallel_run *run, sb_communicator *c,
                       const struct parallel_job *job);
void parallel_run_free(struct parallel_run *run);

/* The same for ranks that mailbox_run starts, with this as context. One that fails ends the
   process, as the others would wait forever. */
struct parallel_ranks {
    struct parallel_job one;
    struct parallel_run run[6]; /* of each rank */
};
void parallel_run_rank(sb_communicator *c, void *ranks);

struct parallel_compared {
    double gradients; /* the largest difference, relative to the largest gradient */
    double losses;    /* the largest relative difference */
};
struct parallel_compared parallel_compare(const struct parallel_run *a,
                                          const struct parallel_run *b);

#endif
