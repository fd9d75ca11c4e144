/*
 * LoRA: adapters of low rank for linear layers (Hu et al. 2021). With a frozen weight W (out, in),
 * a layer computes
 *
 *     y = x W' + b + alpha / rank (x A') B'        A (rank, in), B (out, rank)
 *
 * The adapters are ordinary parameters, "<layer>.lora_a" and "<layer>.lora_b". B begins at 0, so
 * that the model begins as it was.
 */
#ifndef SOFTBACK_NN_LORA_H
#define SOFTBACK_NN_LORA_H

#include "parameters.h"

typedef struct {
    int64_t rank;   /* of the adapters; at least 1 */
    double alpha;   /* 0: rank */
    const char *on; /* a pattern (nn/groups.h) of names of layers; NULL: "*.query,*.value" */
} sb_lora_options;

/* Gives adapters to the linear layers that are made with this set from now on and whose names
   match; layers that were made before keep theirs, and their alpha / rank. Fails when a number is
   out of range. */
SB_API bool sb_parameters_lora(sb_parameters *set, const sb_lora_options *options);

/* Freezes all parameters but the adapters. Fails when there are none: no layer matched. */
SB_API bool sb_lora_freeze(sb_parameters *set);

/* Adds the adapters to the weights, W += alpha / rank B A, and begins them again with B = 0. Fails
   when there are none; after a lack of memory some are added and the others are not. */
SB_API bool sb_lora_merge(sb_parameters *set);

#endif
