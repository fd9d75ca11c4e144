/*
 * bf16 copies of parameters, for training in mixed precision on a GPU: copies that are made where
 * they are used are a launch each. Here the first step notes which parameters the model rounds, and
 * later steps cast them CAST_LIST at a time, each list when its first copy is needed. Linears and
 * norms add to the gradients of the parameters themselves, in f32 (node_writes_f32). A parameter
 * that a step rounds twice is cast twice, so that gradients of other operations are added in f32
 * too. Results have the bits of single casts.
 *
 * On the CPU, where a launch costs nothing, each parameter is cast where it is used; so are those
 * of a recomputed layer, whose copies live only while the layer runs, and frozen ones.
 */
#ifndef SOFTBACK_NN_ROUNDED_PARAMETERS_H
#define SOFTBACK_NN_ROUNDED_PARAMETERS_H

#include "nn/parameters.h"
#include "ops/context.h"

/* Opens the tape of a training step of this set: with this context, which is completed. */
void rounded_parameters_begin(sb_parameters *set, sb_tape *tape, sb_context *context);

/* The copy of a parameter on the open tape, which backward follows. */
sb_tensor *rounded_parameter(sb_tensor *parameter);

/* Before the first step rounds n parameters, of which this is the first: they go into one list, and
   so into one block, for operations that read them together. */
void rounded_parameters_in_one_list(sb_tensor *first, int n);

void rounded_parameters_free(struct rounded_parameters *rounded); /* NULL is allowed */

#endif
