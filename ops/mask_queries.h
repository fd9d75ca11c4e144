/* Queries that a mask leaves without a key. */
#ifndef SOFTBACK_OPS_MASK_QUERIES_H
#define SOFTBACK_OPS_MASK_QUERIES_H

#include "ops/mask_terms.h"
#include "ops/runs.h"

/*
 * q with zeros in the queries that the mask blocks entirely, on a tape that records: NaN there then
 * reaches no gradient of what q is multiplied by. `whole` are the sizes of the unsharded scores,
 * and q has two runs of their queries. Its shape is that of an operand of attention. Returns q
 * itself where every query has a key, and NULL for NULL.
 */
sb_tensor *mask_keep_queries(const char *who, const sb_mask *mask, struct mask_sizes whole,
                             const struct run run[2], bool heads_first, sb_tensor *q);

#endif
