/*
 * Mixed precision (Micikevicius et al. 2018): what layers hand on is bf16, parameters stay f32 and
 * are rounded where they are used, so that small steps of the optimiser are not lost; their
 * gradients, the optimiser's moments, losses, and sums within operations are f32 too.
 *
 * It is for tapes that record: evaluation and decoding use the parameters as they are.
 */
#ifndef SOFTBACK_NN_PRECISION_H
#define SOFTBACK_NN_PRECISION_H

#include "autograd/node.h"
#include "nn/transformer.h"

/* A parameter (or NULL) in the dtype of the x that it meets. */
static inline sb_tensor *precision_of(sb_tensor *parameter, const sb_tensor *x)
{
    const bool rounds = parameter && x && sb_tensor_dtype(x) == SB_BF16;
    return rounds ? sb_cast(parameter, SB_BF16) : parameter;
}

/* What enters the layers: rounded, if the model is to be trained in bf16 and the tape records. */
static inline sb_tensor *precision_enter(sb_precision precision, sb_tensor *x)
{
    const bool rounds = x && precision == SB_PRECISION_BF16 && tape_open()->mode == SB_RECORD;
    return rounds ? sb_cast(x, SB_BF16) : x;
}

#endif
