/* The inside of communicators, for the library's own files. */
#ifndef SOFTBACK_TENSOR_RANKS_H
#define SOFTBACK_TENSOR_RANKS_H

#include "tensor/communicator.h"
#include "tensor/communicator_plugin.h"

struct sb_communicator {
    const struct communicator_plugin *plugin; /* NULL: alone */
    struct group *group;
    int rank, size;
    int job_rank;           /* among all ranks of the job, by which it is named */
    int64_t sent;           /* bytes, to others */
    sb_communicator *whole; /* that it was split from; NULL: none */
    uint32_t reductions;    /* how many were begun: they tell their messages apart by it */
};

/* A communicator of a group, which it takes; with NULL for both of a rank that is alone. */
sb_communicator *communicator_new(const struct communicator_plugin *plugin, struct group *group);

/* The plug-in's `send`, counted. */
bool communicator_send(sb_communicator *c, const void *data, size_t bytes, int to, int tag,
                       struct transfer *transfer);

/* Tags of messages: a reduction has two of its own, and exchanges share one. */
enum { EXCHANGE_TAG = MOST_TAG, REDUCTIONS_AT_A_TIME = MOST_TAG / 2 };

#endif
