/* The output layer of a model: a logit for each symbol, and the loss of the targets. */
#ifndef SOFTBACK_NN_OUTPUT_HEAD_H
#define SOFTBACK_NN_OUTPUT_HEAD_H

#include "linear.h"

typedef struct {
    sb_tensor *weight; /* (V, C): Xavier, or a tied embedding table (Press and Wolf 2017) */
    sb_tensor *bias;   /* (V), zeros; or NULL */
    double scale;      /* of y, and so of the logits without their bias; 0: 1 */
    bool padded;       /* set it where the table is that of an embedding with padding: the row
                          padding_id of the weight is a constant of the logits, too */
    int64_t padding_id;
} sb_output_head;

/* Adds "<name>.bias", if it has one, and, unless `tied` is an embedding table (V, C) to use
   instead,
   "<name>.weight". Fails as sb_linear_layer_init does. */
SB_API bool sb_output_head_init(sb_output_head *head, sb_parameters *set, const char *name,
                                int64_t C, int64_t V, bool bias, sb_tensor *tied);
/* y (..., C) -> logits (..., V) */
SB_API sb_tensor *sb_output_head_logits(const sb_output_head *head, sb_tensor *y);
/* The cross entropy of the logits of y (..., C) with targets (...) of i32, without storing all
   logits (sb_linear_cross_entropy). */
SB_API sb_tensor *sb_output_head_loss(const sb_output_head *head, sb_tensor *y, sb_tensor *targets,
                                      const sb_cross_entropy_options *options);

#endif
