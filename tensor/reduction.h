/*
 * An asynchronous all-reduce (sum) with a fixed order of additions.
 *
 * MPI's own all-reduce may add in any order, which may change between calls. Here the vector of n
 * numbers is divided into P pieces. Rank r receives piece r of every rank, adds them in the order
 * of ranks, and sends the sum to all. So one rank sums each number, and all ranks get the same
 * bits. Each rank sends and receives 2 (P - 1) / P n numbers, the lower bound (Patarasuk and Yuan
 * 2009), and needs memory for (P - 1) / P n numbers.
 */
#ifndef SOFTBACK_TENSOR_REDUCTION_H
#define SOFTBACK_TENSOR_REDUCTION_H

#include "tensor/ranks.h"
#include "tensor/storage.h"

struct reduction;

/* For `count` numbers, f32 or f64, in the memory of a device; reusable. */
struct reduction *reduction_new(sb_communicator *c, const sb_device *device, sb_dtype dtype,
                                int64_t count);
void reduction_free(struct reduction *reduction); /* NULL is allowed */

/* Starts the sum; do not touch x until it is finished. All ranks start their reductions in the same
   order. */
bool reduction_start(struct reduction *reduction, void *x);

/* Makes progress without waiting; call it from time to time. */
bool reduction_progress(struct reduction *reduction, bool *done);

/* Waits for the end; x is the sum. */
bool reduction_finish(struct reduction *reduction);

#endif
