/* Rows of attention between random queries and keys: how much of a gradient gets through. */
#ifndef SOFTBACK_MODELS_EXPLAIN_WIDTH_H
#define SOFTBACK_MODELS_EXPLAIN_WIDTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WIDTH_QUERIES = 48,
    WIDTH_GROUPS = 48,
    WIDTH_KEYS = 10,
    WIDTH_ROWS = WIDTH_QUERIES * WIDTH_GROUPS
};

struct width_measured {
    double variance;      /* of the scores z = scale q k' */
    double squared_slope; /* mean |dz/dq|^2 */
    double deaf;          /* the share of rows with ||J|| < 0.01 */
    double gradient;      /* mean |dq| of a row, for normal gradients of its weights */
};

/* Every query with every group of keys, all of d normal numbers, fixed by d. */
bool width_measure(int64_t d, double scale, struct width_measured *measured);

#endif
