/*
 * What the library and the plug-in that talks between ranks tell each other: the part of MPI that
 * is needed, so that no other file knows MPI.
 */
#ifndef SOFTBACK_TENSOR_COMMUNICATOR_PLUGIN_H
#define SOFTBACK_TENSOR_COMMUNICATOR_PLUGIN_H

#include "tensor/error.h"
#include <stddef.h>
#include <stdint.h>

/* What the library gives. */
struct communicator_host {
    uint64_t abi; /* of the headers that both sides read; first, so that it can always be read */
    void *(*fail)(const char *format, ...)SB_PRINTF(1, 2); /* sb_fail */
};

struct group; /* ranks that talk with each other: an MPI_Comm */

/* A message under way: an MPI_Request. */
struct transfer {
    uint64_t word;
};

enum { MOST_TAG = 32767 }; /* what every MPI allows */

/* What the plug-in gives. Calls return NULL or false, with a message, when MPI reports a failure.
 */
struct communicator_plugin {
    struct group *(*open)(void); /* all ranks of the job */
    struct group *(*split)(struct group *group, int color, int key);
    void (*close)(struct group *group); /* of the job's: waits for all ranks, and ends MPI */
    int (*rank)(const struct group *group);
    int (*size)(const struct group *group);
    int (*processors)(const struct group *group);
    bool (*send)(struct group *group, const void *data, size_t bytes, int to, int tag,
                 struct transfer *transfer);
    bool (*receive)(struct group *group, void *room, size_t bytes, int from, int tag,
                    struct transfer *transfer);
    bool (*test)(struct transfer *transfer, bool *done); /* also moves what is under way */
    bool (*wait)(struct transfer *transfer);
    bool (*broadcast)(struct group *group, void *data, size_t bytes, int root);
    bool (*barrier)(struct group *group);
    bool (*watch)(struct group *group, double seconds);
    void (*abort)(void); /* does not return */
};

/* The function that a plug-in exports as "softback_communicator"; NULL, having failed. */
typedef const struct communicator_plugin *communicator_open(const struct communicator_host *host);

#endif
