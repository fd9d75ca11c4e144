/* sb_backward_in_shares, for the trainer. */
#ifndef SOFTBACK_NN_SHARES_RUN_H
#define SOFTBACK_NN_SHARES_RUN_H

#include "nn/shares.h"
#include "ops/context.h"

enum { MOST_SHARES = 256 };

/* The summed loss of a share, a tensor of one element on the open tape, and its value, which is 0
   unless set. Before its first operation the function says in *place where its items are in the
   batch. */
typedef sb_tensor *share_loss(void *context, int share, sb_partition *place, double *value);

/* *sum is the sum of the values, even when a share fails. */
bool shares_run(sb_parameters *set, int shares, sb_random *random, share_loss *loss, void *context,
                double *sum);

struct share_replicas;
void shares_free(struct share_replicas *shares); /* NULL is allowed */

/* Bytes of the gradients that the shares of a set have for themselves. */
int64_t shares_bytes(const sb_parameters *set);

#endif
