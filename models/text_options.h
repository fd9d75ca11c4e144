/* The options of a model of texts: an encoder-decoder, a language model or a classifier. */
#ifndef SOFTBACK_MODELS_TEXT_OPTIONS_H
#define SOFTBACK_MODELS_TEXT_OPTIONS_H

#include "../nn/transformer.h"

typedef enum {
    SB_POOLING_MEAN,  /* over all symbols and "begin" */
    SB_POOLING_FIRST, /* the output at "begin" (Devlin et al. 2019) */
} sb_pooling;

/* A kind of models refuses an option that it does not have, unless that is 0; it ignores the layers
   of an encoder or decoder that it lacks. */
typedef struct {
    sb_transformer_options transformer;
    bool tie_embeddings;    /* with a decoder: the output's weights are the target's embeddings */
    bool share_embeddings;  /* encoder-decoder: one table for source and target, whose vocabularies
                               must be one */
    double label_smoothing; /* of the loss, in [0, 1) */
    int64_t context;        /* language model: the most symbols that it reads at a time; of a longer
                               text it reads the last half of so many, or more; 0: all */
    bool running_text;      /* language model: a prompt stands in the middle of a long text; "begin"
                               is put before an empty one only */
    sb_pooling pooling;     /* classifier: of the encoder's outputs */
    sb_activation hidden;   /* classifier: of a layer (C to C) between the pooled output and the
                               labels, as BERT has one; default (SB_ACTIVATION_IDENTITY): none */
} sb_text_model_options;

#endif
