/* The parts of sb_backward_in_shares, for the trainer. */
#ifndef SOFTBACK_NN_SHARES_RUN_H
#define SOFTBACK_NN_SHARES_RUN_H

#include "autograd/replicas.h"
#include "nn/shares.h"

enum { MOST_SHARES = 256 };

/* Forward and backward of one share, on a tape that uses the replicas; NULL: none. */
typedef bool share_pass(void *context, int share, const struct replicas *replicas);

/* Calls `pass` for each share, and adds the gradients. */
bool shares_run(sb_parameters *set, int shares, share_pass *pass, void *context);

struct share_replicas;
void shares_free(struct share_replicas *shares); /* NULL is allowed */

/* Bytes of the gradients that the shares of a set have for themselves. */
int64_t shares_bytes(const sb_parameters *set);

#endif
