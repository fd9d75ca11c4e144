/*
 * The interface between the library and the MPI plug-in: the part of MPI that softback needs. No
 * other file depends on MPI.
 */
#ifndef SOFTBACK_TENSOR_COMMUNICATOR_PLUGIN_H
#define SOFTBACK_TENSOR_COMMUNICATOR_PLUGIN_H

#include "tensor/error.h"
#include <stddef.h>
#include <stdint.h>

/* What the library provides. */
struct communicator_host {
    uint64_t abi; /* hash of the headers that both sides include; the first member, so that it is
                     always readable */
    void *(*fail)(const char *format, ...)SB_PRINTF(1, 2); /* sb_fail */
};

struct group; /* an MPI_Comm */

struct group_sizes {
    int rank, size, processors; /* of this rank: 0 to size - 1; processors that it has for itself */
};

/* A pending message: an MPI_Request. */
struct transfer {
    uint64_t word;
};

enum { MOST_TAG = 32767 }; /* every MPI allows this tag */

/* What the plug-in provides. Calls return NULL or false, with a message, when MPI reports an
   error. */
struct communicator_plugin {
    struct group *(*open)(void); /* all ranks of the job */
    struct group *(*split)(struct group *group, int color, int key);
    void (*close)(struct group *group); /* closing the group of the job waits for all ranks and
                                           finalises MPI */
    struct group_sizes (*sizes)(const struct group *group);
    bool (*send)(struct group *group, const void *data, size_t bytes, int to, int tag,
                 struct transfer *transfer);
    bool (*receive)(struct group *group, void *room, size_t bytes, int from, int tag,
                    struct transfer *transfer);
    /* Whether a message has been sent or received, which also makes progress on pending ones; done
       NULL: waits until then. */
    bool (*complete)(struct transfer *transfer, bool *done);
    bool (*broadcast)(struct group *group, void *data, size_t bytes, int root);
    bool (*barrier)(struct group *group);
    bool (*watch)(const struct group *group, double seconds);
    void (*abort)(void); /* does not return */
};

/* The function that a plug-in exports as "softback_communicator"; returns NULL, with a message, on
   failure. */
typedef const struct communicator_plugin *communicator_open(const struct communicator_host *host);

#endif
