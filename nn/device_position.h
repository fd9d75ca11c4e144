/*
 * The position of a decoding step in device memory. A CUDA graph repeats a step with the host's
 * numbers as they were when it was captured; so whatever depends on the position is read from a
 * tensor: the place in the caches, the lengths of the mask, and rows of tables, in which a layer
 * finds what it would compute from the number (encodings, angles, biases).
 *
 * It is part of the context of a step's tape. A table is made when it is first needed, in a step
 * that runs eagerly.
 */
#ifndef SOFTBACK_NN_DEVICE_POSITION_H
#define SOFTBACK_NN_DEVICE_POSITION_H

#include "ops/ops.h"

struct device_table {
    const void *layer;
    sb_tensor *rows;
};

struct device_position {
    sb_tensor *at;      /* (1) of i32: the position of the new symbol of each sequence */
    sb_tensor *lengths; /* (B) of i32: at + 1 */
    int64_t room;       /* the number of positions in the tables and in the caches */
    int64_t tables, tables_room;
    struct device_table *table;
};

/* For B sequences; end it even after a failure. */
bool device_position_begin(struct device_position *p, int64_t B, int64_t at, int64_t room);
void device_position_end(struct device_position *p);

/* The open tape's, or NULL. */
struct device_position *device_position_open(void);

/* The row of the present position, (1, n), of a layer's table (positions, n), which `make` computes
   with operations for positions 0..room - 1. */
sb_tensor *device_position_row(struct device_position *p, const void *layer,
                               sb_tensor *(*make)(const void *layer, int64_t room));

#endif
