/* How the init of each layer begins and ends, and completes its options. */
#ifndef SOFTBACK_NN_LAYER_H
#define SOFTBACK_NN_LAYER_H

#include "nn/flat.h"
#include "nn/transformer.h"

/* A layer that is being made. */
struct layer_start {
    void *layer;
    size_t size; /* in bytes */
    sb_parameters *set;
    struct parameters_mark mark;
};

/* Refuses arguments that are NULL, and zeroes the layer. */
bool layer_begin(struct layer_start *start, const char *who, void *layer, size_t size,
                 sb_parameters *set, const char *name);
/* `made`: whether all of it is. If not, the layer becomes zero again, and the set what it was when
   the layer began: no half of it stays behind. Returns `made`. */
bool layer_end(const struct layer_start *start, bool made);

/* Refuses a size below 1. */
bool layer_size(const char *who, const char *what, int64_t size);

/* Which options a layer uses; the others refuse nothing. */
enum layer_uses {
    USES_HEADS = 1,        /* how many there are */
    USES_ATTENTION = 2,    /* their size, scores, dropout; with USES_HEADS */
    USES_FEED_FORWARD = 4, /* hidden units, activation */
    USES_NORM = 8,         /* its place and kind */
    USES_POSITIONS = 16,   /* how positions are encoded */
    USES_EMBEDDING = 32,   /* its positions, dropout, precision */
    USES_STACK = 64,       /* how many layers there are */
    USES_LAYER = USES_HEADS | USES_ATTENTION | USES_FEED_FORWARD | USES_NORM | USES_POSITIONS,
    USES_ALL = USES_LAYER | USES_EMBEDDING | USES_STACK
};

/* sb_transformer_complete for one layer, which `who` names in the message (transformer.c). */
bool layer_complete(const char *who, unsigned uses, const sb_transformer_options *options,
                    sb_transformer_options *complete);

#endif
