/* The internals of a decoder's state. */
#ifndef SOFTBACK_NN_DECODER_STATE_H
#define SOFTBACK_NN_DECODER_STATE_H

#include "nn/stack.h"

struct sb_decoder_state {
    const sb_decoder *decoder;
    int layers;
    int64_t length;
    sb_kv_cache **self, **cross; /* one for each layer, those of `cross` behind the others; NULL in
                                    a language model */
    int64_t count;
    int32_t *origin; /* for each of the `count` sequences, its sequence in the first step */
};

/* A new state for a decoder with this number of layers. */
sb_decoder_state *decoder_state_new(const sb_decoder *decoder, int layers, bool crosses);

/*
 * For steps whose position is in device memory (nn/device_position.h), in the context of their
 * tape: sb_decoder_step leaves the state's length as it is, and decoder_state_advance adds the
 * positions of such steps later. decoder_state_reserve makes room for this many positions; false
 * when out of memory. The state is not empty.
 */
int64_t decoder_state_room(const sb_decoder_state *state);
bool decoder_state_reserve(sb_decoder_state *state, int64_t positions);
void decoder_state_follow(sb_decoder_state *state, const sb_tensor *position); /* NULL: no more */
void decoder_state_advance(sb_decoder_state *state, int64_t positions);

/* For beams whose hypotheses a device chooses: of each `slots` sequences, which have one source,
   sequence i becomes what sequence from[i] of these was, in the first *position positions. */
bool decoder_state_rearrange(sb_decoder_state *state, int64_t slots, const sb_tensor *from,
                             const sb_tensor *position);

/* The number of elements of the largest table for such steps, of biases, at this capacity. */
int64_t decoder_table_size(const sb_decoder *decoder, int64_t room);

/* Undoes a failed step: removes what its first layers have appended. Returns NULL. */
void *decoder_state_take_back(sb_decoder_state *state);

#endif
