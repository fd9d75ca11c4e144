/*
 * Gradients that are summed over ranks, each of which has seen a share of a batch.
 *
 * The flat buffer is cut into buckets. Backward comes to the last layers first, whose parameters
 * lie at its end; so from the end on, each bucket's sum begins when backward is done with the last
 * node that adds to it, and goes on beside the rest. The messages move when nodes are done: that is
 * often enough, and takes no thread that would compete with the computation.
 */
#ifndef SOFTBACK_NN_SHARED_GRADIENTS_H
#define SOFTBACK_NN_SHARED_GRADIENTS_H

#include "autograd/listener.h"
#include "nn/parameters.h"
#include "tensor/communicator.h"

struct shared_gradients;

extern int64_t shared_gradients_bucket; /* numbers in a bucket; tests take fewer */

/* Parameters of f32 or f64. Both must outlive it. */
struct shared_gradients *shared_gradients_new(sb_communicator *c, sb_parameters *set);
void shared_gradients_free(struct shared_gradients *shared); /* NULL is allowed */

/* Before the first backward of a step, with no tape open. */
bool shared_gradients_begin(struct shared_gradients *shared);

/* For the tape whose backward is the last one before the sum; a rank may also have none. */
const struct listener *shared_gradients_listener(const struct shared_gradients *shared);

/*
 * Waits for the sums: every rank, also one that ran no
 * backward, has the gradient of all ranks, and
 * each parameter has one. *without, unless NULL, becomes the name of the first parameter that has
 * none on any rank, or NULL.
 */
bool shared_gradients_finish(struct shared_gradients *shared, const char **without);

/* Seconds in which this rank did nothing but sum, since the beginning: what was not hidden. */
double shared_gradients_seconds(const struct shared_gradients *shared);

#endif
