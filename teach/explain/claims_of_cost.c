/* Claims about work and memory, counted from the objects that the library makes. */
#include "autograd/tape.h"
#include "nn/attention.h"
#include "ops/kv_cache.h"
#include "teach/explain/claims.h"

/* Multiply-adds of a cached step: one for each weight of the projections, and one for each number
   of keys and values that it reads. */
static bool cached_step(struct measured *m)
{
    enum { T = 1024, C = 256 };
    const sb_transformer_options options = {.width = C, .heads = 4, .key_heads = 4};
    sb_parameters *set = sb_parameters_new(1);
    sb_multi_head_attention layer;
    bool ok = set && sb_multi_head_attention_init(&layer, set, "a", &options, false);
    sb_kv_cache *cache = sb_kv_cache_new();
    double projections = 0, read = 0;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *memory = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(1, T, C)));
    const sb_attending attending = {.cache = cache};
    ok = ok && cache && sb_multi_head_attention_forward(&layer, memory, memory, &attending);
    if (ok) {
        const sb_tensor *weights[] = {layer.query.weight, layer.key.weight, layer.value.weight,
                                      layer.output.weight};
        for (int i = 0; i < 4; i++)
            projections += (double)sb_tensor_size(weights[i]);
        read = 2.0 * (double)sb_kv_cache_length(cache) * C;
    }
    ok = sb_tape_end(&tape) && ok;
    sb_kv_cache_free(cache);
    sb_parameters_free(set);
    double share = ok ? 100 * read / (read + projections) : 0;
    return conclude(
        m, ok, share <= 1, true,
        "Only the cost of the projections is constant. With %d positions of width %d in the "
        "cache, attention over them is %.0f %% of the multiply-adds of one attention layer's step, "
        "without its feed-forward layer: %.0f of %.0f.",
        T, C, share, read, read + projections);
}

static sb_tensor *zeros(int64_t rows, int64_t C)
{
    return sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(rows, C)));
}

/* Bytes that are live behind n queries over n keys, made in some chunks, beyond those before. */
static bool held_bytes(int64_t n, int chunks, sb_mode mode, sb_attention_algorithm algorithm,
                       int64_t *held, int64_t *peak)
{
    enum { C = 16 };
    sb_tape tape;
    sb_tape_begin(&tape, mode);
    sb_tensor *q = sb_tensor_requires_grad(zeros(n, C)), *k = zeros(n, C), *v = zeros(n, C);
    const sb_attention_options options = {.algorithm = algorithm};
    sb_device_reset_peak(sb_device_in_use());
    int64_t before = sb_device_memory(sb_device_in_use()).live_bytes;
    bool ok = v != NULL;
    for (int i = 0; ok && i < chunks; i++) {
        sb_tape inner;
        if (mode == SB_NO_RECORD)
            sb_tape_begin(&inner, mode);
        sb_tensor *part = sb_slice(q, 0, i * n / chunks, n / chunks);
        ok = sb_attention(part, k, v, &options) != NULL;
        if (mode == SB_NO_RECORD)
            ok = sb_tape_end(&inner) && ok;
    }
    sb_memory memory = sb_device_memory(sb_device_in_use());
    *held = memory.live_bytes - before;
    *peak = memory.peak_bytes - before;
    return sb_tape_end(&tape) && ok;
}

static bool chunks(struct measured *m)
{
    int64_t whole, parts, peak, whole_peak, parts_peak;
    bool ok = held_bytes(512, 1, SB_RECORD, SB_ATTENTION_COMPOSED, &whole, &peak) &&
              held_bytes(512, 8, SB_RECORD, SB_ATTENTION_COMPOSED, &parts, &peak) &&
              held_bytes(512, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &peak, &whole_peak) &&
              held_bytes(512, 8, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &peak, &parts_peak);
    if (!ok)
        return false;
    double recorded = (double)parts / (double)whole, free = (double)parts_peak / (double)whole_peak;
    return conclude(
        m, true, recorded < 0.9, free < 0.9,
        "512 queries in 8 chunks take %.1f times the memory while recording, since backward keeps "
        "the weights of every chunk; without recording %.1f times.",
        recorded, free);
}

/* What each further query takes with tiles, and how often they must read the keys. What a thread
   needs for its own tile is in both lengths, and cancels. */
static bool flash(struct measured *m)
{
    int64_t held, small, large, stored_small, stored_large;
    bool ok = held_bytes(1024, 1, SB_NO_RECORD, SB_ATTENTION_TILED, &held, &small) &&
              held_bytes(2048, 1, SB_NO_RECORD, SB_ATTENTION_TILED, &held, &large) &&
              held_bytes(1024, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &held, &stored_small) &&
              held_bytes(2048, 1, SB_NO_RECORD, SB_ATTENTION_COMPOSED, &held, &stored_large);
    if (!ok)
        return false;
    const double n = 2048, d = 64, fast = 16384; /* M numbers of fast memory, 64 KiB of float32 */
    double tiles = (double)(large - small) / 1024;
    double stored = (double)(stored_large - stored_small) / 1024;
    return conclude(
        m, true, n * d / fast <= 1, tiles < stored / 10,
        "From 1024 to 2048 queries and keys, each takes %.0f bytes more with tiles, its output "
        "and two numbers; %.0f with stored weights. But each block of queries reads all keys "
        "and values again: n^2 d^2 / M = %.0f times n d at n = %.0f, d = %.0f, M = %.0f.",
        tiles, stored, n * d / fast, n, d, fast);
}

const struct claim claims_of_cost[] = {
    {"with a cache a decoding step costs the same at any length", cached_step},
    {"flash attention reads Q, K and V once", flash},
    {"computing in chunks saves memory", chunks},
    {NULL, NULL}};
