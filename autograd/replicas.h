/*
 * Replicas of leaves, for shares of a batch that threads compute at the same time: on a tape with
 * replicas a leaf is replaced, as input of a node, by its replica, which has the same data and a
 * gradient of its own. Inner tapes inherit them.
 */
#ifndef SOFTBACK_AUTOGRAD_REPLICAS_H
#define SOFTBACK_AUTOGRAD_REPLICAS_H

#include "autograd/node.h"

struct replica {
    const sb_tensor *of;
    sb_tensor *leaf;
};

struct replicas {
    struct replica *at;
    int64_t count, found; /* the last; a search begins there: passes use leaves in one order */
    bool in_place;        /* the leaves stand for themselves: of the share that uses them */
};

/* For at most n leaves. */
bool replicas_new(struct replicas *replicas, int64_t n);
void replicas_free(struct replicas *replicas);

/* Adds a replica of a leaf, whose gradient is `gradient`, of which it takes the reference. */
bool replicas_add(struct replicas *replicas, sb_tensor *of, sb_tensor *gradient);

/* Fails if input i is a leaf that other shares read while the open tape's computes. */
bool replicas_may_write(const char *who, int i, const sb_tensor *input);

/* The replica of a leaf; t itself when it has none, or replicas is NULL or in place. */
sb_tensor *replica_of(struct replicas *replicas, sb_tensor *t);

#endif
