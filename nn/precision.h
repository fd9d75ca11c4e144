/*
 * Mixed precision (Micikevicius et al. 2018): activations are bf16. Parameters stay f32, so that
 * small optimiser steps are not lost, and are rounded where they are used (in training on a GPU
 * many at a time: nn/rounded_parameters.h). Gradients of parameters, optimiser moments, losses, and
 * sums within operations are f32 too.
 *
 * With TF32, activations are f32, and a GPU rounds the operands of products to TF32, which has 10
 * bits of the fraction; sums are f32 (compare torch.set_float32_matmul_precision("high")).
 *
 * Both apply to tapes that record: evaluation and decoding use unrounded parameters.
 */
#ifndef SOFTBACK_NN_PRECISION_H
#define SOFTBACK_NN_PRECISION_H

#include "autograd/node.h"
#include "nn/rounded_parameters.h"
#include "nn/transformer.h"

/* A parameter (or NULL) in the dtype of the activations x. */
static inline sb_tensor *precision_of(sb_tensor *parameter, const sb_tensor *x)
{
    const bool rounds = parameter && x && sb_tensor_dtype(x) == SB_BF16;
    return rounds ? rounded_parameter(parameter) : parameter;
}

/* Before precision_of of n parameters that an operation reads together, from `first` on. */
static inline void precision_together(sb_tensor *first, int n, const sb_tensor *x)
{
    if (first && sb_tensor_dtype(x) == SB_BF16)
        rounded_parameters_in_one_list(first, n);
}

/* The input of the layers, in the precision of training if the tape records: rounded to bf16; or
   the tape's products use TF32 from here on. */
static inline sb_tensor *precision_enter(sb_precision precision, sb_tensor *x)
{
    if (!x || tape_open()->mode != SB_RECORD)
        return x;
    if (precision == SB_PRECISION_TF32)
        tape_open()->tf32 = true;
    return precision == SB_PRECISION_BF16 ? sb_cast(x, SB_BF16) : x;
}

#endif
