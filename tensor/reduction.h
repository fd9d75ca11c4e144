/*
 * The sum over all ranks, by a fixed algorithm, while the rank computes something else.
 *
 * MPI's own all-reduce may add in any order, and another one on each call. Here the vector of n
 * numbers is cut into P pieces. Rank r receives everybody's piece r, adds them in the order of the
 * ranks, and sends the sum to everybody. So each number is summed by one rank only and all get its
 * bits; each rank sends and receives 2 (P - 1) / P n numbers, which is the least that can be done
 * (Patarasuk and Yuan 2009), and holds (P - 1) / P n of them besides its own.
 */
#ifndef SOFTBACK_TENSOR_REDUCTION_H
#define SOFTBACK_TENSOR_REDUCTION_H

#include "tensor/ranks.h"
#include "tensor/storage.h"

struct reduction;

/* For `count` numbers, f32 or f64, in a device's memory; can be used again and again. */
struct reduction *reduction_new(sb_communicator *c, const sb_device *device, sb_dtype dtype,
                                int64_t count);
void reduction_free(struct reduction *reduction); /* NULL is allowed */

/* Begins to sum; x must be left alone until it is finished. All ranks begin their reductions in the
   same order. */
bool reduction_start(struct reduction *reduction, void *x);

/* Does what can be done without waiting; to be called now and then. */
bool reduction_progress(struct reduction *reduction, bool *done);

/* Waits for it; x is the sum. */
bool reduction_finish(struct reduction *reduction);

#endif
