#include "nn/position_bias.h"
#include "nn/device_position.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/runs.h"
#include "tensor/failure.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"

enum { FARTHEST = 32 }; /* larger distances share one bias */

bool sb_position_bias_init(sb_position_bias *bias, sb_parameters *set, const char *name,
                           const sb_transformer_options *options)
{
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    struct layer_start start;
    sb_transformer_options o;
    if (!layer_begin(&start, "position_bias", bias, sizeof *bias, set, name) ||
        !layer_complete("position_bias", USES_HEADS | USES_POSITIONS, options, &o))
        return false;
    *bias = (sb_position_bias){.positions = o.positions,
                               .heads = o.heads,
                               .ranks = o.ranks,
                               .dtype = sb_parameters_dtype(set),
                               .along = o.along,
                               .buckets = layer_buckets(&o),
                               .distance = layer_distance(&o)};
    if (bias->positions != SB_POSITIONS_RELATIVE && bias->positions != SB_POSITIONS_BUCKETS)
        return true;
    const int64_t columns =
        bias->positions == SB_POSITIONS_RELATIVE ? 2 * FARTHEST + 1 : bias->buckets;
    bias->table = sb_parameters_add_cut(set, name_join(name, "distance").text,
                                        SB_SHAPE(o.heads, columns), zero, (sb_cut){o.ranks, 0});
    return layer_end(&start, bias->table != NULL);
}

/* The slopes of ALiBi depend on the index of a head among all heads. */
static sb_tensor *alibi(const sb_position_bias *bias, int64_t Lq, int64_t Lk)
{
    const int64_t here = bias->heads / sb_communicator_size(bias->ranks);
    sb_tensor *y = sb_alibi(bias->dtype, bias->heads, Lq, Lk);
    return here == bias->heads ? y : sb_slice(y, 1, here * sb_communicator_rank(bias->ranks), here);
}

/* The bucket, of n, of a distance back: near ones have one each, farther ones logarithmically wider
   ones, up to the last. */
static int64_t bucket_back(const sb_position_bias *bias, int64_t n, int64_t back)
{
    const int64_t near = n / 2;
    if (back < near)
        return back;
    const double far = math_log((double)back / (double)near) /
                       math_log((double)bias->distance / (double)near) * (double)(n - near);
    const int64_t bucket = near + (int64_t)far;
    return bucket < n ? bucket : n - 1;
}

/* The bucket of key minus query: in a decoder later keys are never seen, elsewhere they have the
   second half of all buckets. */
static int64_t bucket_of(const sb_position_bias *bias, int64_t distance)
{
    if (bias->along == SB_SEQUENCE_TARGET)
        return bucket_back(bias, bias->buckets, distance < 0 ? -distance : 0);
    const int64_t half = bias->buckets / 2;
    return distance > 0 ? half + bucket_back(bias, half, distance)
                        : bucket_back(bias, half, -distance);
}

/* The table of buckets spread to one by distance, (H, 2 R + 1). */
static sb_tensor *spread_buckets(const sb_position_bias *bias)
{
    const int64_t R = bias->distance, n = 2 * R + 1;
    const int swap[] = {1, 0};
    int32_t *bucket = memory_new((size_t)n * sizeof *bucket);
    if (!bucket)
        return sb_fail("position_bias: out of memory");
    for (int64_t i = 0; i < n; i++)
        bucket[i] = (int32_t)bucket_of(bias, i - R);
    sb_tensor *ids = sb_tensor_from(SB_I32, SB_SHAPE(n), bucket);
    memory_free(bucket);
    ids = ids ? sb_tape_own(ids) : NULL;
    return ids ? sb_permute(sb_embedding(sb_permute(bias->table, 2, swap), ids), 2, swap) : NULL;
}

/* The bias rows of the last Lq of Lk positions. */
static sb_tensor *last_rows(const sb_position_bias *bias, int64_t Lq, int64_t Lk)
{
    if (bias->positions == SB_POSITIONS_ALIBI)
        return alibi(bias, Lq, Lk);
    sb_tensor *table = bias->positions == SB_POSITIONS_BUCKETS ? spread_buckets(bias) : bias->table;
    return table ? sb_relative_bias(table, Lq, Lk) : NULL;
}

/* The bias rows of this rank's positions, `here` of Lk. */
static sb_tensor *rows_here(const sb_position_bias *bias, int64_t here, int64_t Lk)
{
    struct run run[2];
    sb_tensor *part[2];
    const int runs = context_runs(bias->along, here, run);
    for (int i = 0; i < runs; i++)
        part[i] = sb_slice(last_rows(bias, Lk - run[i].first, Lk), 2, 0, run[i].count);
    return runs == 1 ? part[0] : sb_concatenate(part, runs, 2);
}

/* In row i the biases of query i for all keys and heads: (room, room H). */
static sb_tensor *table_of_biases(const void *bias, int64_t room)
{
    sb_tensor *all = last_rows(bias, room, room); /* (1, H, room, room) */
    sb_tensor *by_query = sb_permute(all, 4, (const int[]){0, 2, 1, 3});
    return sb_reshape(by_query, SB_SHAPE(room, room * sb_tensor_dim(by_query, 2)));
}

/* The biases of the one query whose position the device holds: (1, H, 1, room). */
static sb_tensor *row_on_device(const sb_position_bias *bias)
{
    struct device_position *p = device_position_open();
    sb_tensor *row = device_position_row(p, bias, table_of_biases);
    return row ? sb_reshape(row, SB_SHAPE(1, sb_tensor_dim(row, 1) / p->room, 1, p->room)) : NULL;
}

sb_tensor *sb_position_bias_forward(const sb_position_bias *bias, int64_t Lq, int64_t Lk, bool *ok)
{
    if (!bias || !ok)
        return fail_null("position_bias", bias ? "ok" : "bias");
    *ok = true;
    if (bias->positions != SB_POSITIONS_ALIBI && !bias->table)
        return NULL;
    const sb_context *context = context_open();
    const int64_t whole = context->ring ? partition_piece(context->partition, bias->along)->of : 0;
    sb_tensor *y = device_position_open() ? row_on_device(bias)
                   : whole                ? rows_here(bias, Lq, whole)
                                          : last_rows(bias, Lq, Lk);
    *ok = y != NULL;
    return y;
}
