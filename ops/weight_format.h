/* How decoding stores the weights that it multiplies by. */
#ifndef SOFTBACK_OPS_WEIGHT_FORMAT_H
#define SOFTBACK_OPS_WEIGHT_FORMAT_H

typedef enum {
    SB_WEIGHTS_AS_STORED, /* in the model's dtype */
    SB_WEIGHTS_INT8,      /* 8 bits a number and one scale for each row; so are inputs */
} sb_weight_format;

#endif
