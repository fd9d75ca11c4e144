/*
 * Data parallelism: sums gradients over ranks, which have different parts of a batch.
 *
 * The flat buffer of gradients is divided into buckets. Backward visits the last layers first, and
 * their parameters are at the end of the buffer. So, starting at the end, the all-reduce of a
 * bucket begins after the last node that adds to it, and overlaps with the rest of backward.
 * Messages progress whenever a node is done, which is frequent and needs no extra thread.
 */
#ifndef SOFTBACK_NN_SHARED_GRADIENTS_H
#define SOFTBACK_NN_SHARED_GRADIENTS_H

#include "autograd/watch.h"
#include "nn/parameters.h"
#include "tensor/communicator.h"

struct shared_gradients;

extern int64_t shared_gradients_bucket; /* numbers in a bucket; tests use fewer */

/* Parameters of f32 or f64. Both must outlive it. */
struct shared_gradients *shared_gradients_new(sb_communicator *c, sb_parameters *set);
void shared_gradients_free(struct shared_gradients *shared); /* NULL is allowed */

/* Before the first backward of a step, with no tape open. */
bool shared_gradients_begin(struct shared_gradients *shared);

/* The listener for the last backward before the sum; a rank may also run no backward. */
const struct listener *shared_gradients_listener(const struct shared_gradients *shared);

/*
 * Waits for the sums. Then every rank, even one that ran no backward, has the summed gradient of
 * every parameter that has one on any rank. *without, unless `without` is NULL, becomes the name of
 * the first parameter that has no gradient on any rank, or NULL.
 */
bool shared_gradients_finish(struct shared_gradients *shared, const char **without);

/* Total seconds in which this rank waited for sums: communication that did not overlap. */
double shared_gradients_seconds(const struct shared_gradients *shared);

#endif
