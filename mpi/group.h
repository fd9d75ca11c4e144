/* Declarations that the files of the plug-in share. No other file includes mpi.h. */
#ifndef SOFTBACK_MPI_GROUP_H
#define SOFTBACK_MPI_GROUP_H

#include "tensor/communicator_plugin.h"
#include <mpi.h>

struct group {
    MPI_Comm comm;
    bool world;
    struct group_sizes sizes;
};

/* True if `code` is success; otherwise fails with MPI's reason as the message. */
bool mpi_ok(const char *what, int code);
bool mpi_fail(const char *message);

/* Ends all ranks half a second after the caller's last message. Does not return. */
void job_abort(void);

/* Heartbeats (heartbeat.c): started once, for all ranks of the job. */
bool heartbeat_begin(const struct group *group, double seconds);
void heartbeat_end(void);

#endif
