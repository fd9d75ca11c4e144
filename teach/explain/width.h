/* Rows of attention between random queries and keys: how much of a gradient gets through. */
#ifndef SOFTBACK_TEACH_EXPLAIN_WIDTH_H
#define SOFTBACK_TEACH_EXPLAIN_WIDTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WIDTH_QUERIES = 48,
    WIDTH_GROUPS = 48,
    WIDTH_KEYS = 10,
    WIDTH_ROWS = WIDTH_QUERIES * WIDTH_GROUPS,
    WIDTH_BINS = 9,
    WIDTH_SATURATED_BINS = 5, /* the first ones hold the saturated rows */
};

struct width_measured {
    double variance;       /* of the scores z = scale q k' */
    double squared_slope;  /* mean |dz/dq|^2 */
    int norms[WIDTH_BINS]; /* of rows whose ||J|| lies from one of width_edges up to the next */
    double saturated;      /* the share of rows with ||J|| < 0.01 */
    double gradient;       /* mean |dq| of a row, for normal gradients of its weights */
    double saturated_error, gradient_error; /* standard errors of these two */
};

/* Where bins begin: 0, and then half decades from 1e-4 to 0.3; no ||J|| is above 1. */
extern const double width_edges[WIDTH_BINS];

/* Every query with every group of keys, all of d normal numbers, fixed by d. */
bool width_measure(int64_t d, double scale, struct width_measured *measured);

#endif
