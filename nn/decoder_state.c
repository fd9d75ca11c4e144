#include "nn/decoder_state.h"
#include "ops/decoding.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

sb_decoder_state *decoder_state_new(const sb_decoder *decoder, int layers, bool crosses)
{
    const int caches = crosses ? 2 * layers : layers;
    sb_decoder_state *state = memory_new(sizeof *state);
    if (!state)
        return sb_fail("decoder_state: out of memory");
    *state = (sb_decoder_state){.decoder = decoder,
                                .layers = layers,
                                .self = memory_new((size_t)caches * sizeof *state->self)};
    bool ok = state->self || sb_fail("decoder: out of memory");
    state->cross = ok && crosses ? state->self + layers : NULL;
    for (int i = 0; ok && i < caches; i++)
        ok = (state->self[i] = sb_kv_cache_new()) != NULL;
    if (ok)
        return state;
    sb_decoder_state_free(state);
    return NULL;
}

void sb_decoder_state_free(sb_decoder_state *state)
{
    if (!state)
        return;
    for (int i = 0; state->self && i < state->layers; i++) {
        sb_kv_cache_free(state->self[i]);
        sb_kv_cache_free(state->cross ? state->cross[i] : NULL);
    }
    memory_free(state->self);
    memory_free(state->origin);
    memory_free(state);
}

void *decoder_state_take_back(sb_decoder_state *state)
{
    for (int i = 0; i < state->layers; i++) {
        sb_kv_cache_truncate(state->self[i], state->length);
        if (state->cross && state->length == 0)
            sb_kv_cache_truncate(state->cross[i], 0);
    }
    return NULL;
}

int64_t decoder_state_room(const sb_decoder_state *state)
{
    return kv_cache_room(state->self[0]);
}

bool decoder_state_reserve(sb_decoder_state *state, int64_t positions)
{
    bool ok = true;
    for (int i = 0; ok && i < state->layers; i++)
        ok = kv_cache_reserve(state->self[i], positions);
    return ok;
}

void decoder_state_follow(sb_decoder_state *state, const sb_tensor *position)
{
    for (int i = 0; i < state->layers; i++)
        kv_cache_follow(state->self[i], position);
}

void decoder_state_advance(sb_decoder_state *state, int64_t positions)
{
    for (int i = 0; i < state->layers; i++)
        kv_cache_advance(state->self[i], positions);
    state->length += positions;
}

bool decoder_state_rearrange(sb_decoder_state *state, int64_t slots, const sb_tensor *from,
                             const sb_tensor *position)
{
    return kv_caches_rearrange(state->layers, state->self, slots, from, position);
}

int64_t sb_decoder_state_length(const sb_decoder_state *state)
{
    return state ? state->length : 0;
}

/* Finds the origins of the sequences rows[0..n-1]. *same: they equal the present ones, as in most
   steps of beam search; then the cross-attention caches stay unchanged. */
static bool trace(sb_decoder_state *state, int64_t n, const int32_t *rows, bool *same)
{
    int32_t *origin = memory_new((size_t)(n > 0 ? n : 1) * sizeof *origin);
    if (!origin)
        return sb_fail("decoder_state_reorder: out of memory");
    *same = n == state->count;
    for (int64_t i = 0; i < n; i++) {
        origin[i] = state->origin ? state->origin[rows[i]] : rows[i];
        *same = *same && state->origin && origin[i] == state->origin[i];
    }
    memory_free(state->origin);
    state->origin = origin;
    state->count = n;
    return true;
}

bool sb_decoder_state_reorder(sb_decoder_state *state, int64_t n, const int32_t *rows)
{
    bool same = false;
    if (!state || !rows)
        return fail_null("decoder_state_reorder", state ? "rows" : "state");
    for (int i = 0; i < state->layers; i++)
        if (!sb_kv_cache_reorder(state->self[i], n, rows))
            return false;
    if (!state->cross)
        return true;
    if (!trace(state, n, rows, &same)) /* all rows exist, as the caches have checked */
        return false;
    for (int i = 0; i < state->layers && !same; i++)
        if (!sb_kv_cache_reorder(state->cross[i], n, rows))
            return false;
    return true;
}
