/* The struct behind sb_parameters, for the files that implement it. */
#ifndef SOFTBACK_NN_PARAMETER_SET_H
#define SOFTBACK_NN_PARAMETER_SET_H

#include "nn/flat.h"

struct parameter {
    char *name;
    sb_tensor *tensor;
    int64_t offset; /* in the flat buffer of values */
    int64_t slot;   /* in that of gradients, where frozen parameters have no elements */
    sb_cut cut;     /* ranks: NULL if it is not distributed */
    double rate;    /* its group's factor of the learning rate */
    double decay;   /* its group's weight decay; 0: the optimiser's, SB_ZERO: none */
    double scale;   /* alpha / rank of adapters, stored with lora_a (nn/lora.h); else 0 */
    bool frozen;
};

/* The adapters that new linear layers get; rank 0: none. */
struct lora {
    int64_t rank;
    double scale;
    char *on; /* a pattern of names of layers */
};

struct sb_parameters {
    sb_dtype dtype;
    sb_random random;
    sb_communicator *ranks; /* over which parameters are distributed; NULL: none */
    int64_t count, room, size;
    struct parameter *item;
    int64_t flattened; /* how many of them are in the flat buffers */
    sb_tensor *values, *gradients;
    int64_t layout;         /* changes with the layout of the gradients */
    bool undrawn;           /* new parameters get no initial values */
    bool moved;             /* the gradients must be laid out again: others are frozen now */
    parameters_check *fits; /* if set, called with `context` for each new parameter */
    const void *context;
    struct lora lora;
    struct rounded_parameters *rounded; /* bf16 copies (nn/rounded_parameters.h); NULL: none */
    struct share_replicas *shares;      /* for shares of a batch (nn/shares.h); NULL: none */
    atomic_bool in_shares;              /* shares are being computed */
};

#endif
