#include "nn/attention.h"
#include "nn/device_position.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/linear.h"
#include "ops/positions.h"
#include "ops/runs.h"
#include "tensor/failure.h"

static bool add_norms(sb_multi_head_attention *layer, sb_parameters *set, const char *name,
                      const sb_transformer_options *o)
{
    sb_norm_options norm = layer_norm_options(o);
    norm.ranks = layer->ranks;
    return !layer->qk_norm ||
           (sb_norm_layer_init_with(&layer->query_norm, set, name_join(name, "query_norm").text,
                                    layer->size, &norm) &&
            sb_norm_layer_init_with(&layer->key_norm, set, name_join(name, "key_norm").text,
                                    layer->size, &norm));
}

/* K: the size of all heads of keys, and of values. */
static bool add_projections(sb_multi_head_attention *layer, sb_parameters *set, const char *name,
                            const sb_transformer_options *o)
{
    const int64_t C = o->width, Q = o->heads * layer->size, K = o->key_heads * layer->size;
    const bool bias = o->biases != SB_BIASES_NONE, all = o->biases == SB_BIASES_ALL;
    const sb_cut out = {layer->ranks, 0}, in = {layer->ranks, 1};
    return sb_linear_layer_init_cut(&layer->query, set, name_join(name, "query").text, C, Q, bias,
                                    out) &&
           sb_linear_layer_init_cut(&layer->key, set, name_join(name, "key").text, o->key_width, K,
                                    bias, out) &&
           sb_linear_layer_init_cut(&layer->value, set, name_join(name, "value").text,
                                    o->value_width, K, bias, out) &&
           sb_linear_layer_init_cut(&layer->output, set, name_join(name, "output").text, Q, C, all,
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
                                       .size = layer_head_size(&o),
                                       .ranks = o.ranks,
                                       .dropout = sb_option(o.attention_dropout, o.dropout),
                                       .score = o.score,
                                       .scale = o.score_scale,
                                       .temperature = o.temperature,
                                       .algorithm = o.attention,
                                       .qk_norm = o.qk_norm,
                                       .rotary = rotary,
                                       .angles = layer_rotary_options(&o),
                                       .along = o.along,
                                       .keys_along = o.along};
    return layer_end(&start,
                     add_projections(layer, set, name, &o) && add_norms(layer, set, name, &o));
}

/* A projection of x (B, L, C), split into heads: (B, L, heads, D). */
static sb_tensor *project(const sb_linear_layer *projection, sb_tensor *x, int64_t heads, int64_t D)
{
    sb_tensor *y = sb_linear_layer_forward(projection, x, SB_ACTIVATION_IDENTITY);
    return sb_reshape(y, 4, (const int64_t[]){sb_tensor_dim(x, 0), sb_tensor_dim(x, 1), heads, D});
}

/* The angles of the first `room` positions: cosines and sines in each row. */
static sb_tensor *table_of_angles(const void *layer_, int64_t room)
{
    const sb_multi_head_attention *layer = layer_;
    const int64_t D = layer->size;
    const sb_dtype dtype = dtype_of_sums(sb_tensor_dtype(layer->query.weight));
    sb_tensor *angles = rotary_angles(dtype, 0, room, D, &layer->angles);
    return sb_reshape(sb_permute(angles, 3, (const int[]){1, 0, 2}), SB_SHAPE(room, D));
}

/* x (B, 1, H, D) rotated by the position that the device holds. */
static sb_tensor *turn_on_device(const sb_multi_head_attention *layer, sb_tensor *x)
{
    sb_tensor *row = device_position_row(device_position_open(), layer, table_of_angles);
    return rotary_by_angles(x, sb_reshape(row, SB_SHAPE(2, 1, layer->size / 2)));
}

/* Queries or keys, normalised in each head and rotated by their positions, which may be two runs of
   the sequence, as the layer does. */
static sb_tensor *prepare(const sb_multi_head_attention *layer, const sb_norm_layer *norm,
                          sb_tensor *x, int64_t start)
{
    x = layer->qk_norm ? sb_norm_layer_forward(norm, x) : x;
    struct run run[2];
    sb_tensor *part[2];
    if (!layer->rotary || !x)
        return x;
    if (device_position_open())
        return turn_on_device(layer, x);
    const int runs = context_runs(layer->along, sb_tensor_dim(x, 1), run);
    if (runs == 1)
        return sb_rotary_scaled(x, start + run[0].first, &layer->angles);
    for (int i = 0; i < runs; i++)
        part[i] = sb_rotary_scaled(sb_slice(x, 1, run[i].here, run[i].count), start + run[i].first,
                                   &layer->angles);
    return sb_concatenate(part, runs, 1);
}

/* What the projections read. */
struct sources {
    sb_tensor *query, *key, *value; /* x, the memory, and the values' source, or the memory again */
};

/* Passes the sources through sb_to_ranks, each tensor once. */
static void enter(const sb_multi_head_attention *layer, struct sources *s)
{
    const struct sources from = *s;
    if (sb_communicator_size(layer->ranks) == 1)
        return;
    s->query = sb_to_ranks(from.query, layer->ranks);
    if (from.key)
        s->key = from.key == from.query ? s->query : sb_to_ranks(from.key, layer->ranks);
    if (from.value)
        s->value = from.value == from.query ? s->query
                   : from.value == from.key ? s->key
                                            : sb_to_ranks(from.value, layer->ranks);
}

/* Checks the sources: the memory may be missing where the cache holds all keys and values. */
static bool sources_fit(const struct sources *s, bool cached)
{
    const sb_tensor *const t[] = {s->query, s->key, s->value};
    const char *const names[] = {"x", "memory", "values"};
    for (int i = 0; i < 3; i++) {
        if (!t[i] && (i == 0 || !cached))
            return fail_null("multi_head_attention", names[i]);
        if (t[i] && sb_tensor_rank(t[i]) != 3)
            return sb_fail("multi_head_attention: %s is %s; it must be (batch, length, width)",
                           names[i], tensor_shape(t[i]).text);
    }
    return true;
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

/* Whether two projections have weights of one shape, both biases or none, and no adapters. */
static bool projections_match(const sb_linear_layer *a, const sb_linear_layer *b)
{
    return !a->lora_a && !b->lora_a && !a->bias == !b->bias &&
           sb_tensor_dim(a->weight, 0) == sb_tensor_dim(b->weight, 0) &&
           sb_tensor_dim(a->weight, 1) == sb_tensor_dim(b->weight, 1);
}

/* Queries, keys and values, split into heads; NULL: not projected. */
struct projected {
    sb_tensor *of[LINEAR_GROUP];
};

/*
 * The projections that one product computes, on a device that can: all three of x in
 * self-attention, keys and values of the memory in cross-attention. The others are not projected.
 */
static struct projected project_together(const sb_multi_head_attention *layer,
                                         const struct sources *s)
{
    const sb_linear_layer *const layers[] = {&layer->query, &layer->key, &layer->value};
    struct projected p = {{NULL}};
    sb_tensor *weight[LINEAR_GROUP], *bias[LINEAR_GROUP];
    if (s->key != s->value || !linear_groups(s->key) ||
        !projections_match(&layer->key, &layer->value))
        return p;
    const bool all = s->query == s->key && projections_match(&layer->query, &layer->key);
    const int first = all ? 0 : 1, n = LINEAR_GROUP - first;
    precision_together(layers[first]->weight, layer->key.bias ? 2 * n : n, s->key);
    for (int i = 0; i < n; i++) {
        weight[i] = precision_of(layers[first + i]->weight, s->key);
        bias[i] = precision_of(layers[first + i]->bias, s->key);
    }
    if (!linear_group(s->key, n, weight, layer->key.bias ? bias : NULL, layer->key_heads,
                      p.of + first))
        return (struct projected){{NULL}};
    return p;
}

/* The attention of the projected heads, joined: (B, Lq, H D). */
static sb_tensor *attend_heads(const sb_multi_head_attention *layer, struct sources s,
                               const sb_attending *a)
{
    const sb_attention_options options = {.mask = a->mask,
                                          .bias = precision_of(a->bias, s.query),
                                          .score = layer->score,
                                          .scale = layer->scale,
                                          .temperature = layer->temperature,
                                          .dropout = layer->dropout,
                                          .weights = a->weights,
                                          .algorithm =
                                              a->weights ? SB_ATTENTION_COMPOSED : layer->algorithm,
                                          .queries = layer->along,
                                          .keys = layer->keys_along,
                                          .heads = heads_here(layer)};
    const int64_t H = layer->heads, G = layer->key_heads, D = layer->size;
    const struct projected p = a->cached ? (struct projected){{NULL}} : project_together(layer, &s);
    sb_tensor *k = NULL, *v = NULL;
    sb_tensor *q = p.of[0] ? p.of[0] : project(&layer->query, s.query, H, D);
    q = prepare(layer, &layer->query_norm, q, a->start);
    if (!a->cached) {
        k = p.of[1] ? p.of[1] : project(&layer->key, s.key, G, D);
        k = prepare(layer, &layer->key_norm, k, a->start);
        v = p.of[2] ? p.of[2] : project(&layer->value, s.value, G, D);
    }
    sb_tensor *y = attend(a, q, k, v, &options);
    const int64_t joined = layer->heads * layer->size;
    return sb_reshape(y, SB_SHAPE(sb_tensor_dim(s.query, 0), sb_tensor_dim(s.query, 1), joined));
}

sb_tensor *sb_multi_head_attention_forward(const sb_multi_head_attention *layer, sb_tensor *x,
                                           sb_tensor *memory, const sb_attending *attending)
{
    if (!layer)
        return fail_null("multi_head_attention", "layer");
    const sb_attending all = {0}, *a = attending ? attending : &all;
    struct sources s = {x, memory, a->values ? a->values : memory};
    if (!sources_fit(&s, a->cached))
        return NULL;
    enter(layer, &s);
    return sb_linear_layer_join(&layer->output, attend_heads(layer, s, a), layer->ranks);
}
