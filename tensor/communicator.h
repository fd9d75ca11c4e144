/*
 * A communicator: the ranks of one job, each a separate process, and the messages between them.
 *
 * Except for rank, size, processors, sent and abort, all ranks make the same calls in the same
 * order. Exchanges may differ between ranks as long as each send has its receive. After a failure
 * the ranks are out of step, so call sb_communicator_abort. A NULL communicator stands for a single
 * rank.
 */
#ifndef SOFTBACK_TENSOR_COMMUNICATOR_H
#define SOFTBACK_TENSOR_COMMUNICATOR_H

#include "dtype.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sb_communicator sb_communicator;

/*
 * All ranks that mpirun has started. A process that was started without mpirun or with -n 1 is a
 * single rank and needs no plug-in. Otherwise this opens libsoftback_mpi.so, which it searches for
 * like the CUDA plug-in (sb_device_cuda); the environment variable SOFTBACK_MPI names another file.
 * Returns NULL, with a message, when there is no matching plug-in.
 */
SB_API sb_communicator *sb_communicator_world(void);

/* The ranks with the same color, ordered by key, then by rank. Close it before the communicator
   that it was split from. */
SB_API sb_communicator *sb_communicator_split(sb_communicator *c, int color, int key);

/* Waits for the other ranks. Closing the world ends all communication. NULL is allowed. */
SB_API void sb_communicator_close(sb_communicator *c);

SB_API int sb_communicator_rank(const sb_communicator *c); /* 0 .. size - 1 */
SB_API int sb_communicator_size(const sb_communicator *c);

/* The number of processors for this rank: those that it may run on, divided by the number of ranks
   of this machine that share them; at least 1. 0 for a single rank, which may use all. */
SB_API int sb_communicator_processors(const sb_communicator *c);

/* The number of bytes that this rank has sent in sums and exchanges, including those of
   communicators that were split from this one. Broadcasts are not counted, since MPI chooses their
   algorithm. */
SB_API int64_t sb_communicator_sent(const sb_communicator *c);

/*
 * All-reduce: x = the sum of x over all ranks, n numbers (f32 or f64) in host memory. Numbers are
 * added in the order of ranks, ((x0 + x1) + x2) + ..., so all ranks get the same bits, and the same
 * in every run with as many ranks. Each rank sends 2 (P - 1) / P n numbers (tensor/reduction.h).
 */
SB_API bool sb_communicator_sum(sb_communicator *c, sb_dtype dtype, int64_t n, void *x);

/* Copies the bytes of rank `root` to all ranks. */
SB_API bool sb_communicator_broadcast(sb_communicator *c, int root, void *data, size_t bytes);

/* Waits until every rank has called it. */
SB_API bool sb_communicator_barrier(sb_communicator *c);

/*
 * Sends host memory to one rank and receives from another; both may be this rank. The message
 * received must have exactly `room_bytes` bytes. The transfer overlaps with computation until
 * `finish`; until then, do not touch the memory. Messages between two ranks arrive in order.
 */
typedef struct sb_exchange sb_exchange;
SB_API sb_exchange *sb_exchange_start(sb_communicator *c, int to, const void *data, size_t bytes,
                                      int from, void *room, size_t room_bytes);
SB_API bool sb_exchange_finish(sb_exchange *exchange); /* and frees it */

/*
 * Starts heartbeats: a thread of each rank sends one to the next rank each second, even during a
 * long computation. When a rank is silent for `seconds` (its process was stopped or its machine
 * failed), a message on standard error names it and the job ends. Call it once, for the world.
 * Fails when MPI does not support calls from several threads.
 */
SB_API bool sb_communicator_watch(sb_communicator *c, double seconds);

/* Prints "<who>: rank 2: <message>" to standard error and ends all ranks of the job with a nonzero
   exit status. Does not return. */
SB_API void sb_communicator_abort(sb_communicator *c, const char *who, const char *message);

#endif
