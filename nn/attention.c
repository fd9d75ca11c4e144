#include "nn/attention.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/runs.h"
#include "tensor/failure.h"

/* C: the width; K: the width of keys and of values, over all heads. */
static bool add_projections(sb_multi_head_attention *layer, sb_parameters *set, const char *name,
                            int64_t C, int64_t K)
{
    const sb_cut out = {layer->ranks, 0}, in = {layer->ranks, 1};
    return sb_linear_layer_init_cut(&layer->query, set, name_join(name, "query").text, C, C, true,
                                    out) &&
           sb_linear_layer_init_cut(&layer->key, set, name_join(name, "key").text, C, K, true,
                                    out) &&
           sb_linear_layer_init_cut(&layer->value, set, name_join(name, "value").text, C, K, true,
                                    out) &&
           sb_linear_layer_init_cut(&layer->output, set, name_join(name, "output").text, C, C, true,
                                    in);
}

bool sb_multi_head_attention_init(sb_multi_head_attention *layer, sb_parameters *set,
                                  const char *name, const sb_transformer_options *options,
                                  bool rotary)
{
    sb_transformer_options o = options ? *options : (sb_transformer_options){0};
    struct layer_start start;
    o.positions =
        rotary ? SB_POSITIONS_ROTARY : SB_POSITIONS_NONE; /* this layer has no other positions */
    if (!layer_begin(&start, "multi_head_attention", layer, sizeof *layer, set, name) ||
        !layer_complete("multi_head_attention", USES_HEADS | USES_ATTENTION, &o, &o))
        return false;
    const int ranks = sb_communicator_size(o.ranks);
    *layer = (sb_multi_head_attention){.heads = o.heads / ranks,
                                       .key_heads = o.key_heads / ranks,
                                       .size = o.width / o.heads,
                                       .ranks = o.ranks,
                                       .dropout = o.dropout,
                                       .score = o.score,
                                       .temperature = o.temperature,
                                       .algorithm = o.attention,
                                       .rotary = rotary,
                                       .along = o.along,
                                       .keys_along = o.along};
    return layer_end(&start, add_projections(layer, set, name, o.width, o.key_heads * layer->size));
}

/* A projection of x (B, L, C), split into heads: (B, L, heads, D). */
static sb_tensor *project(const sb_linear_layer *projection, sb_tensor *x, int64_t heads, int64_t D)
{
    sb_tensor *y = sb_linear_layer_forward(projection, x, SB_ACTIVATION_IDENTITY);
    return sb_reshape(y, 4, (const int64_t[]){sb_tensor_dim(x, 0), sb_tensor_dim(x, 1), heads, D});
}

/* x rotated by its positions, which may be two runs of its sequence. */
static sb_tensor *turn(const sb_multi_head_attention *layer, sb_tensor *x, int64_t start)
{
    struct run run[2];
    sb_tensor *part[2];
    if (!layer->rotary || !x)
        return x;
    const int runs = context_runs(layer->along, sb_tensor_dim(x, 1), run);
    if (runs == 1)
        return sb_rotary(x, start + run[0].first, 0);
    for (int i = 0; i < runs; i++)
        part[i] = sb_rotary(sb_slice(x, 1, run[i].here, run[i].count), start + run[i].first, 0);
    return sb_concatenate(part, runs, 1);
}

/* Passes x and the memory through sb_to_ranks, once if they are the same tensor. */
static void enter(const sb_multi_head_attention *layer, sb_tensor **x, sb_tensor **memory)
{
    const bool same = *memory == *x;
    if (sb_communicator_size(layer->ranks) == 1)
        return;
    *x = sb_to_ranks(*x, layer->ranks);
    if (*memory)
        *memory = same ? *x : sb_to_ranks(*memory, layer->ranks);
}

static sb_tensor *attend(const sb_attending *a, sb_tensor *q, sb_tensor *k, sb_tensor *v,
                         const sb_attention_options *options)
{
    if (!a->cache)
        return sb_attention(q, k, v, options);
    if (!a->cached && !sb_kv_cache_append(a->cache, k, v))
        return NULL;
    return sb_attention_cached(q, a->cache, options);
}

/* The heads of this rank, with tensor parallelism. */
static sb_piece heads_here(const sb_multi_head_attention *layer)
{
    const int rank = sb_communicator_rank(layer->ranks), ranks = sb_communicator_size(layer->ranks);
    return ranks > 1 ? (sb_piece){.of = layer->heads * ranks, .first = layer->heads * rank}
                     : (sb_piece){0};
}

sb_tensor *sb_multi_head_attention_forward(const sb_multi_head_attention *layer, sb_tensor *x,
                                           sb_tensor *memory, const sb_attending *attending)
{
    const sb_attending all = {0}, *a = attending ? attending : &all;
    if (!x || (!memory && !a->cached))
        return fail_null("multi_head_attention", x ? "memory" : "x");
    if (sb_tensor_rank(x) != 3 || (memory && sb_tensor_rank(memory) != 3))
        return sb_fail("multi_head_attention: x has %d axes and memory %d, not 3 "
                       "(batch, length, width)",
                       sb_tensor_rank(x), sb_tensor_rank(memory));
    const sb_attention_options options = {.mask = a->mask,
                                          .bias = precision_of(a->bias, x),
                                          .score = layer->score,
                                          .temperature = layer->temperature,
                                          .dropout = layer->dropout,
                                          .weights = a->weights,
                                          .algorithm =
                                              a->weights ? SB_ATTENTION_COMPOSED : layer->algorithm,
                                          .queries = layer->along,
                                          .keys = layer->keys_along,
                                          .heads = heads_here(layer)};
    enter(layer, &x, &memory);
    sb_tensor *q = turn(layer, project(&layer->query, x, layer->heads, layer->size), a->start);
    sb_tensor *k = NULL, *v = NULL;
    if (!a->cached) {
        k = turn(layer, project(&layer->key, memory, layer->key_heads, layer->size), a->start);
        v = project(&layer->value, memory, layer->key_heads, layer->size);
    }
    sb_tensor *y = attend(a, q, k, v, &options);
    const int64_t joined = layer->heads * layer->size;
    y = sb_reshape(y, 3, (const int64_t[]){sb_tensor_dim(x, 0), sb_tensor_dim(x, 1), joined});
    return sb_linear_layer_join(&layer->output, y, layer->ranks);
}
