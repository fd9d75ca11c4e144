/* What ranks must have in common before they train together, and how the one that differs is named.
 */
#ifndef SOFTBACK_MODELS_TRAINING_AGREEMENT_H
#define SOFTBACK_MODELS_TRAINING_AGREEMENT_H

#include "models/training/settings.h"

/* How a rank stands before the first step. */
struct standing {
    const char *version; /* of softback */
    const char *failure; /* why this rank cannot begin, or NULL; then nothing below is read */
    const char *task;    /* "dates", or "" for files */
    uint64_t data;       /* a hash of its pairs */
    uint64_t weights;    /* a fingerprint of those that every rank has */
    uint64_t part;       /* of those of which it has a part */
    int64_t steps;       /* taken already */
    int sequence_ranks;  /* that each sequence is cut over */
    int head_ranks;      /* that heads are cut over: neighbours, of which each has another part */
    int threads;         /* that it computes with */
    struct settings settings;
};

/*
 * Compares all ranks. True when each can begin, and all with the same: version, kernels, settings,
 * data, step and weights. Otherwise false on every rank, with the same message, "rank 2 reads other
 * data than rank 0", or, when all ranks fail alike, what each of them says; *alike is false only
 * where this rank has failed for itself and the others wait for it.
 */
bool agreement_reach(sb_communicator *c, const struct standing *standing, bool *alike);

#endif
