/* The work of an operation on the tape, counted from the shapes of its node. */
#ifndef SOFTBACK_PROGRAM_BENCH_COST_H
#define SOFTBACK_PROGRAM_BENCH_COST_H

#include "autograd/node.h"

/*
 * Operations are those of matrix products alone, 2 for each multiply-add:
 *
 *     linear              2 rows in out; backward as much for each of x and weight
 *     matmul              2 elements of y, inner size; backward as much for each input
 *     linear_cross_entropy  as linear; forward also computes the gradients, or backward computes
 *                         the logits again
 *     attention           2 kept pairs H (D + Dv); backward twice that, and tiled backward also
 *                         computes q k' again
 *
 * Kept pairs are those within each query's range of keys, by causal, window and lengths; pairs that
 * a dense mask removes within it are counted too. Bytes: forward reads every input and writes every
 * output once; backward reads dy and every input, and writes each gradient that is wanted, once.
 */
struct bench_cost {
    double operations, again, bytes; /* again: to compute what was not stored */
};

struct bench_cost bench_cost_forward(const sb_node *node); /* once it has run */
struct bench_cost bench_cost_backward(const sb_node *node);

#endif
