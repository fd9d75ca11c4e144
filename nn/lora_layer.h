/* Adapters of a linear layer, for nn/linear.c. */
#ifndef SOFTBACK_NN_LORA_LAYER_H
#define SOFTBACK_NN_LORA_LAYER_H

#include "nn/linear.h"

/* Adds adapters to the layer of this name if the set asks for them (nn/lora.h). `ranks` hold parts
   of its weight. */
bool lora_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int64_t in,
               int64_t out, int ranks);

/* sb_linear_layer_forward of a layer with adapters. */
sb_tensor *lora_forward(const sb_linear_layer *layer, sb_tensor *x, sb_activation activation);

/* Whether a parameter of this name is an adapter. */
bool lora_is_adapter(const char *name);

#endif
