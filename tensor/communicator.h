/*
 * A communicator: the ranks of one job, each a process of its own, and how they talk.
 *
 * All calls but rank, size, processors and abort are made by all ranks of the communicator, in the
 * same order; exchanges may differ from rank to rank as long as each send meets its receive. After
 * a failure the ranks no longer agree on what comes next: sb_communicator_abort ends the job. Where
 * a communicator is asked for, NULL stands for a rank that is alone.
 */
#ifndef SOFTBACK_TENSOR_COMMUNICATOR_H
#define SOFTBACK_TENSOR_COMMUNICATOR_H

#include "dtype.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sb_communicator sb_communicator;

/*
 * The ranks that mpirun has started. A process that was not started by mpirun, or by one with -n 1,
 * is alone, and no plug-in is opened. Otherwise libsoftback_mpi.so is, which is looked for as the
 * plug-in for CUDA is; the environment's SOFTBACK_MPI names another file. NULL, with a message,
 * where there is none that fits: ranks never go on unknown to each other.
 */
SB_API sb_communicator *sb_communicator_world(void);

/* The ranks that give the same color, in the order of their keys (equal ones: of their ranks). To
   be closed before what it was split from. */
SB_API sb_communicator *sb_communicator_split(sb_communicator *c, int color, int key);

/* Waits for the other ranks; for the world, this is the end of all talk. NULL is allowed. */
SB_API void sb_communicator_close(sb_communicator *c);

SB_API int sb_communicator_rank(const sb_communicator *c); /* 0 .. size - 1 */
SB_API int sb_communicator_size(const sb_communicator *c);

/* How many processors this rank has for itself: those that it may run on, divided by the ranks of
   the machine that may run on the same ones; at least 1. Of one that is alone: 0, all that are. */
SB_API int sb_communicator_processors(const sb_communicator *c);

/* How many bytes this rank has sent to others so far, in sums and exchanges, also with what was
   split from this one. Broadcasts are not counted: MPI chooses the way that they take. */
SB_API int64_t sb_communicator_sent(const sb_communicator *c);

/*
 * x = the sum of all ranks' x, n numbers (f32 or f64) in host memory. They are added in the order
 * of the ranks, ((x0 + x1) + x2) + ..., so that every rank gets the same bits, and gets them again
 * whenever there are as many ranks. Each rank sends 2 (P - 1) / P of x (tensor/reduction.h).
 */
SB_API bool sb_communicator_sum(sb_communicator *c, sb_dtype dtype, int64_t n, void *x);

/* Rank `root`'s bytes go to all. */
SB_API bool sb_communicator_broadcast(sb_communicator *c, int root, void *data, size_t bytes);

/* Waits until every rank has come here. */
SB_API bool sb_communicator_barrier(sb_communicator *c);

/*
 * Sends host memory to one rank while receiving from another, of which each may be this one too;
 * exactly `room_bytes` must come. Both go on beside what the rank computes until `finish`; until
 * then the memory must be left alone. One rank's messages to another arrive in their order.
 */
typedef struct sb_exchange sb_exchange;
SB_API sb_exchange *sb_exchange_start(sb_communicator *c, int to, const void *data, size_t bytes,
                                      int from, void *room, size_t room_bytes);
SB_API bool sb_exchange_finish(sb_exchange *exchange); /* and frees it */

/*
 * From here on each rank sends its neighbour a sign of life each second, from a thread of its own,
 * so that a long step is no silence. A rank of which nothing is heard for so long (it was stopped,
 * or its machine was lost) is named on standard error, and the job ended. Once, for the world.
 * Fails where the MPI in use cannot be called by two threads at a time.
 */
SB_API bool sb_communicator_watch(sb_communicator *c, double seconds);

/* Prints "<who>: rank 2: <message>" to standard error and ends the whole job, every rank of it,
   with a status that is not 0. Does not return. */
SB_API void sb_communicator_abort(sb_communicator *c, const char *who, const char *message);

#endif
