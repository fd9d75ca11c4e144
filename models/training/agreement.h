/* Checks that all ranks have the same settings, data and weights before they train together. */
#ifndef SOFTBACK_MODELS_TRAINING_AGREEMENT_H
#define SOFTBACK_MODELS_TRAINING_AGREEMENT_H

#include "models/training/settings.h"

/* The state of a rank before the first step. */
struct rank_state {
    const char *version; /* of softback */
    const char *failure; /* why this rank cannot begin, or NULL; then nothing below is read */
    const char *task;    /* "dates", or "" for files */
    uint64_t data;       /* a hash of its pairs */
    uint64_t weights;    /* a fingerprint of those that every rank holds whole */
    uint64_t part;       /* of those that are cut over ranks */
    int64_t steps;       /* taken already */
    int sequence_ranks;  /* over which each sequence is cut */
    int head_ranks;      /* neighbours over which heads are cut */
    int threads;         /* used by this rank */
    struct settings settings;
};

/*
 * Compares all ranks. True when each can begin, and all with the same: version, kernels, settings,
 * data, step and weights. Otherwise false on every rank, with the same message, "rank 2 has
 * different data from rank 0", or, when all ranks fail alike, what each of them says; *alike is
 * false only where this rank has failed for itself and the others wait for it.
 */
bool agreement_check(sb_communicator *c, const struct rank_state *state, bool *alike);

#endif
