/* Functions that the inits of layers share, and the adapters of a linear layer. */
#ifndef SOFTBACK_NN_LAYER_H
#define SOFTBACK_NN_LAYER_H

#include "nn/flat.h"
#include "nn/linear.h"
#include "nn/transformer.h"

/* A layer under construction. */
struct layer_start {
    void *layer;
    size_t size; /* in bytes */
    sb_parameters *set;
    struct parameters_mark mark;
};

/* Checks that no argument is NULL, and zeroes the layer. */
bool layer_begin(struct layer_start *start, const char *who, void *layer, size_t size,
                 sb_parameters *set, const char *name);
/* Ends the init. Unless `made`, zeroes the layer and removes the parameters that it added to the
   set. Returns `made`. */
bool layer_end(const struct layer_start *start, bool made);

/* The options that a layer uses. The others are not checked. */
enum layer_uses {
    USES_HEADS = 1,        /* the number of heads */
    USES_ATTENTION = 2,    /* head size, scores, dropout; with USES_HEADS */
    USES_FEED_FORWARD = 4, /* hidden units, activation */
    USES_NORM = 8,         /* place and kind of the norm */
    USES_POSITIONS = 16,   /* how positions are encoded */
    USES_EMBEDDING = 32,   /* positions, dropout, precision of the embedding */
    USES_STACK = 64,       /* how many layers there are */
    USES_LAYER = USES_HEADS | USES_ATTENTION | USES_FEED_FORWARD | USES_NORM | USES_POSITIONS,
    USES_ALL = USES_LAYER | USES_EMBEDDING | USES_STACK
};

/* Sizes whose 0 stays in complete options. */
static inline int64_t layer_head_size(const sb_transformer_options *o)
{
    return o->head_size ? o->head_size : o->width / o->heads;
}

static inline int64_t layer_buckets(const sb_transformer_options *o)
{
    return o->position_buckets ? o->position_buckets : 32;
}

static inline int64_t layer_distance(const sb_transformer_options *o)
{
    return o->position_distance ? o->position_distance : 128;
}

/* The rotary positions of a model with these options. */
static inline sb_rotary_options layer_rotary_options(const sb_transformer_options *o)
{
    return (sb_rotary_options){.base = o->rotary_base,
                               .scaling = o->rotary_scaling,
                               .original = o->rotary_original,
                               .low_factor = o->rotary_low_factor,
                               .high_factor = o->rotary_high_factor};
}

/* The norms of a model with these options. */
static inline sb_norm_options layer_norm_options(const sb_transformer_options *o)
{
    return (sb_norm_options){
        .kind = o->norm_kind, .no_bias = o->biases != SB_BIASES_ALL, .epsilon = o->norm_epsilon};
}

/* sb_transformer_complete for one layer; `who` opens the message. */
bool layer_complete(const char *who, unsigned uses, const sb_transformer_options *options,
                    sb_transformer_options *complete);

/* ---- lora.c: adapters of a linear layer ---- */

/* Adds adapters to the layer of this name if the set asks for them (nn/lora.h). `ranks` hold parts
   of its weight. */
bool lora_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int64_t in,
               int64_t out, int ranks);

/* sb_linear_layer_forward of a layer with adapters. */
sb_tensor *lora_forward(const sb_linear_layer *layer, sb_tensor *x, sb_activation activation);

/* Whether a parameter of this name is an adapter. */
bool lora_is_adapter(const char *name);

#endif
