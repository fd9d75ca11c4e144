/*
 * Shares of a batch: threads compute parts of a batch at the same time, each with a tape,
 * activations and gradients of its own, and meet once a step, where the gradients are added in the
 * order of shares, as ranks do it with processes. If threads divided each loop of a kernel instead,
 * they would wait for the slowest one at hundreds of loops.
 */
#ifndef SOFTBACK_NN_SHARES_H
#define SOFTBACK_NN_SHARES_H

#include "parameters.h"

/* The summed loss of items first .. first + count - 1 of a batch, a tensor of one element, on the
   open tape. Several threads call it at the same time. NULL: a failure. */
typedef sb_tensor *(*sb_share_loss)(void *context, int64_t first, int64_t count);

/*
 * Forward and backward of a batch of `items` items in `shares` shares: share s of S has the items
 * from items s / S to items (s + 1) / S. Adds the gradients of all shares to those of the
 * parameters, and stores the sum of their losses in *sum unless it is NULL. All leaves that
 * require a gradient must be in the set: threads may not add to the same gradient.
 *
 * Dropout uses the stream `random`, and depends on the position of an element in the whole batch
 * (ops/context.h), so that it is the same for any number of shares; NULL: no dropout. Results
 * depend on the number of shares, by rounding, but not on the number of threads.
 *
 * Memory: shares - 1 times the gradients, kept with the set for the next call. On a GPU shares run
 * one after the other. Fails, with the message of a share that fails; then the gradients
 * are cleared.
 *
 * A loss may open tapes and compute exact derivatives, also of the parameters. What changes the set
 * or its gradients, such as sb_parameters_add, sb_parameters_clear, an optimiser's step, or
 * sb_gradcheck of a parameter, fails there; and so does this function inside an exact derivative.
 */
SB_API bool sb_backward_in_shares(sb_parameters *set, int64_t items, int shares, sb_random *random,
                                  sb_share_loss loss, void *context, double *sum);

#endif
