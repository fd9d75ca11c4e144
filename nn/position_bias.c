#include "nn/position_bias.h"
#include "nn/layer.h"
#include "nn/name.h"
#include "ops/runs.h"
#include "tensor/failure.h"

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
                               .along = o.along};
    if (bias->positions != SB_POSITIONS_RELATIVE)
        return true;
    bias->table =
        sb_parameters_add_cut(set, name_join(name, "distance").text,
                              SB_SHAPE(o.heads, 2 * FARTHEST + 1), zero, (sb_cut){o.ranks, 0});
    return layer_end(&start, bias->table != NULL);
}

/* The slopes of ALiBi depend on the index of a head among all heads. */
static sb_tensor *alibi(const sb_position_bias *bias, int64_t Lq, int64_t Lk)
{
    const int64_t here = bias->heads / sb_communicator_size(bias->ranks);
    sb_tensor *y = sb_alibi(bias->dtype, bias->heads, Lq, Lk);
    return here == bias->heads ? y : sb_slice(y, 1, here * sb_communicator_rank(bias->ranks), here);
}

/* The bias rows of the last Lq of Lk positions. */
static sb_tensor *last_rows(const sb_position_bias *bias, int64_t Lq, int64_t Lk)
{
    return bias->positions == SB_POSITIONS_ALIBI ? alibi(bias, Lq, Lk)
                                                 : sb_relative_bias(bias->table, Lq, Lk);
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

sb_tensor *sb_position_bias_forward(const sb_position_bias *bias, int64_t Lq, int64_t Lk, bool *ok)
{
    if (!bias || !ok)
        return fail_null("position_bias", bias ? "ok" : "bias");
    *ok = true;
    if (bias->positions != SB_POSITIONS_ALIBI && bias->positions != SB_POSITIONS_RELATIVE)
        return NULL;
    const int64_t whole = partition_piece(context_open()->partition, bias->along)->of;
    sb_tensor *y = whole ? rows_here(bias, Lq, whole) : last_rows(bias, Lq, Lk);
    *ok = y != NULL;
    return y;
}
