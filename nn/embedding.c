#include "nn/embedding.h"
#include "nn/device_position.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "nn/precision.h"
#include "ops/dropout.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/shape.h"
#include <math.h>

/* Whether a table can be used for V symbols of width C. */
static bool fits(const sb_tensor *shared, int64_t V, int64_t C)
{
    if (!shared || (shared->rank == 2 && shared->dim[0] == V && shared->dim[1] == C))
        return true;
    return sb_fail("embedding: the shared table is %s; it must be (%lld, %lld)",
                   tensor_shape(shared).text, (long long)V, (long long)C);
}

static bool has_padding(const sb_transformer_options *o, int64_t V)
{
    return !o->padded || (o->padding_id >= 0 && o->padding_id < V) ||
           sb_fail("embedding: padding_id is %lld; it must be in 0..%lld", (long long)o->padding_id,
                   (long long)V - 1);
}

/* Zeroes a row of a table (V, C). */
static void clear_row(sb_tensor *table, int64_t row)
{
    const double zeros[64] = {0};
    const int64_t C = table->dim[1];
    for (int64_t c = 0; c < C; c += 64)
        tensor_write_part(table, row * C + c, C - c < 64 ? C - c : 64, zeros);
}

/* Adds the tables of positions and segments, and the norm, as the options say. */
static bool add_rest(sb_embedding_layer *layer, sb_parameters *set, const char *name,
                     const sb_transformer_options *o, sb_initial normal)
{
    const bool learned = o->positions == SB_POSITIONS_LEARNED;
    const sb_norm_options norm = layer_norm_options(o);
    if (learned)
        layer->position = sb_parameters_add(
            set, name_join(name, "positions").text,
            SB_SHAPE(o->position_offset + o->positions_longest, o->width), normal);
    if (o->segments)
        layer->segment = sb_parameters_add(set, name_join(name, "segments").text,
                                           SB_SHAPE(o->segments, o->width), normal);
    return !learned == !layer->position && !o->segments == !layer->segment &&
           (!layer->has_norm ||
            sb_norm_layer_init_with(&layer->norm, set, name_join(name, "norm").text, o->width,
                                    &norm));
}

bool sb_embedding_layer_init(sb_embedding_layer *layer, sb_parameters *set, const char *name,
                             int64_t V, const sb_transformer_options *options, sb_tensor *shared)
{
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, "embedding", layer, sizeof *layer, set, name) ||
        !layer_complete("embedding", USES_EMBEDDING | USES_POSITIONS, options, &o) ||
        !check_at_least("embedding", "V", V, 1) || !fits(shared, V, o.width) || !has_padding(&o, V))
        return false;
    const double root = sqrt((double)o.width);
    const sb_initial normal = {SB_INITIAL_NORMAL, 1 / root};
    *layer = (sb_embedding_layer){.C = o.width,
                                  .dropout = o.dropout,
                                  .scale = o.embedding_scale != 0 ? o.embedding_scale : root,
                                  .position_scale = o.position_scale != 0 ? o.position_scale : root,
                                  .offset = o.position_offset,
                                  .has_norm = o.embedding_norm,
                                  .positions = o.positions,
                                  .precision = o.precision,
                                  .along = o.along,
                                  .padded = o.padded,
                                  .padding_id = o.padding_id};
    layer->weight = shared ? shared
                           : sb_parameters_add(set, name_join(name, "weight").text,
                                               SB_SHAPE(V, o.width), normal);
    if (layer->weight && !shared && o.padded)
        clear_row(layer->weight, o.padding_id);
    return layer_end(&start, layer->weight && add_rest(layer, set, name, &o, normal));
}

/* Sines and cosines are neighbours in the table; with SB_POSITIONS_HALVES all sines come first. */
static sb_tensor *run_of_sinusoids(const sb_embedding_layer *layer, sb_dtype dtype, int64_t start,
                                   int64_t L)
{
    sb_tensor *y = sb_sinusoidal(dtype, start, L, layer->C);
    if (layer->positions == SB_POSITIONS_SINUSOIDAL)
        return y;
    y = sb_permute(sb_reshape(y, SB_SHAPE(L, layer->C / 2, 2)), 3, (const int[]){0, 2, 1});
    return sb_reshape(y, SB_SHAPE(L, layer->C));
}

static sb_tensor *run_of_positions(const sb_embedding_layer *layer, sb_dtype dtype, int64_t start,
                                   int64_t L)
{
    if (layer->positions != SB_POSITIONS_LEARNED)
        return run_of_sinusoids(layer, dtype, start, L);
    const int64_t longest = sb_tensor_dim(layer->position, 0) - layer->offset;
    if (start > longest - L)
        return sb_fail("embedding: position %lld is beyond the %lld learned ones",
                       (long long)(start > longest ? start : longest), (long long)longest);
    return sb_scale(sb_slice(layer->position, 0, layer->offset + start, L), layer->position_scale);
}

/* The encodings of the first `room` positions, or of all learned ones if they are fewer. */
static sb_tensor *table_of_positions(const void *layer_, int64_t room)
{
    const sb_embedding_layer *layer = layer_;
    const int64_t learned = layer->position ? layer->position->dim[0] - layer->offset : room;
    return run_of_positions(layer, sb_tensor_dtype(layer->weight), 0,
                            learned < room ? learned : room);
}

/* The positions of x, which may be two runs of its sequence. */
static sb_tensor *positions(const sb_embedding_layer *layer, sb_tensor *x, int64_t start)
{
    struct run run[2];
    sb_tensor *part[2];
    if (device_position_open())
        return device_position_row(device_position_open(), layer, table_of_positions);
    const int runs = context_runs(layer->along, sb_tensor_dim(x, 1), run);
    for (int i = 0; i < runs; i++)
        part[i] = run_of_positions(layer, sb_tensor_dtype(x), start + run[i].first, run[i].count);
    return runs == 1 ? part[0] : sb_concatenate(part, runs, 0);
}

static bool adds_positions(const sb_embedding_layer *layer)
{
    return layer->positions == SB_POSITIONS_SINUSOIDAL || layer->positions == SB_POSITIONS_HALVES ||
           layer->positions == SB_POSITIONS_LEARNED;
}

/* The segments' rows; without segments, the first row for all. */
static sb_tensor *segment_rows(const sb_embedding_layer *layer, const sb_tensor *ids,
                               sb_tensor *segments)
{
    if (!segments)
        return sb_slice(layer->segment, 0, 0, 1);
    if (!shape_equal(segments->rank, segments->dim, ids->rank, ids->dim))
        return sb_fail("embedding: segments are %s, ids are %s: shapes differ",
                       tensor_shape(segments).text, tensor_shape(ids).text);
    return sb_embedding(layer->segment, segments);
}

sb_tensor *sb_embedding_layer_forward(const sb_embedding_layer *layer, sb_tensor *ids,
                                      int64_t start)
{
    return sb_embedding_layer_forward_segments(layer, ids, NULL, start);
}

sb_tensor *sb_embedding_layer_forward_segments(const sb_embedding_layer *layer, sb_tensor *ids,
                                               sb_tensor *segments, int64_t start)
{
    if (!layer || !ids)
        return fail_null("embedding", layer ? "ids" : "layer");
    if (sb_tensor_rank(ids) != 2)
        return sb_fail("embedding: ids have %d axes, not 2 (batch, length)", sb_tensor_rank(ids));
    if (segments && !layer->segment)
        return sb_fail("embedding: segments are given, but the layer has none; set the option "
                       "segments to their number");
    sb_tensor *rows = layer->padded ? sb_embedding_padded(layer->weight, ids, layer->padding_id)
                                    : sb_embedding(layer->weight, ids);
    sb_tensor *x = sb_scale(rows, layer->scale);
    if (x && adds_positions(layer))
        x = sb_add(x, positions(layer, x, start));
    if (x && layer->segment)
        x = sb_add(x, sb_scale(segment_rows(layer, ids, segments), layer->position_scale));
    if (layer->has_norm)
        x = sb_norm_layer_forward(&layer->norm, x);
    return dropout_along(precision_enter(layer->precision, x), layer->dropout, layer->along);
}
