/* The internals of a decoder's state. */
#ifndef SOFTBACK_NN_DECODER_STATE_H
#define SOFTBACK_NN_DECODER_STATE_H

#include "nn/decoder.h"

struct sb_decoder_state {
    const sb_decoder *decoder;
    int layers;
    int64_t length;
    sb_kv_cache **self, **cross; /* one for each layer; cross NULL in a language model */
    int64_t count;
    int32_t *origin; /* for each of the `count` sequences, its sequence in the first step */
};

/* A new state for a decoder with this number of layers. */
sb_decoder_state *decoder_state_new(const sb_decoder *decoder, int layers, bool crosses);

/* Undoes a failed step: removes what its first layers have appended. Returns NULL. */
void *decoder_state_take_back(sb_decoder_state *state);

#endif
