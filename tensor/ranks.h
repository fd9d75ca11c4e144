/* The internals of communicators, for the library's own files. */
#ifndef SOFTBACK_TENSOR_RANKS_H
#define SOFTBACK_TENSOR_RANKS_H

#include "tensor/communicator.h"
#include "tensor/communicator_plugin.h"

struct sb_communicator {
    const struct communicator_plugin *plugin; /* NULL: a single rank */
    struct group *group;
    int rank, size;
    int job_rank;           /* the rank in the whole job, for messages */
    int64_t sent;           /* bytes sent to other ranks */
    sb_communicator *whole; /* the communicator that it was split from, or NULL */
    uint32_t reductions;    /* number of reductions begun; determines the tags of messages */
};

/* Where a share of `count` things begins; `share` may be the number of shares. Shares differ by one
 * thing at most, and the last one is not empty unless all are. */
static inline int64_t share_begin(int64_t count, int share, int shares)
{
    return count * share / shares;
}

/* The same for the share of a rank. */
int64_t communicator_share(const sb_communicator *c, int rank, int64_t count);

/* A communicator of a group, of which it takes ownership; with NULL for both, a single rank. */
sb_communicator *communicator_new(const struct communicator_plugin *plugin, struct group *group);

/* The plug-in's `send`, counted. */
bool communicator_send(sb_communicator *c, const void *data, size_t bytes, int to, int tag,
                       struct transfer *transfer);

/* Tags of messages: a reduction has two of its own, and exchanges share one. */
enum { EXCHANGE_TAG = MOST_TAG, REDUCTIONS_AT_A_TIME = MOST_TAG / 2 };

#endif
