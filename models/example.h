/* An example: one text as a model reads it, alone in a batch, for pictures of its attention. */
#ifndef SOFTBACK_MODELS_EXAMPLE_H
#define SOFTBACK_MODELS_EXAMPLE_H

#include "data/batch.h"
#include "text/vocabulary.h"

/* The symbols of an axis of an attention map: those that attend, or those that are attended to. */
typedef struct {
    sb_vocabulary *vocabulary;
    const int32_t *ids;
    int64_t length;
} sb_example_axis;

/* One attention of a model, in all layers that have it. */
typedef struct {
    const char *name;           /* "cross", "encoder" or "decoder" */
    const char *rows, *columns; /* "output symbols", "the source symbols that they attend to" */
    sb_example_axis queries, keys;
    int first, layers; /* its maps among those of the kind's `attentions` */
    bool causal;
    bool self; /* queries and keys are one sequence */
} sb_example_attention;

enum { SB_EXAMPLE_ATTENTIONS = 3 };

typedef struct {
    sb_batch *batch;
    int64_t choices; /* symbols or labels, one of which the model predicts */
    int64_t heads;   /* of each attention */
    char *target;    /* of a model that writes a text: that, or the given one; else NULL */
    int attentions;
    sb_example_attention attention[SB_EXAMPLE_ATTENTIONS]; /* the most interesting one first */
    int32_t *ids; /* what the axes point into; this and the target are for sb_free */
} sb_example;

#endif
