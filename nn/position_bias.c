#include "nn/position_bias.h"
#include "nn/name.h"

enum { FARTHEST = 32 }; /* distances beyond it share one bias */

bool sb_position_bias_init(sb_position_bias *bias, sb_parameters *set, const char *name,
                           const sb_transformer_options *options)
{
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    *bias = (sb_position_bias){.positions = options->positions,
                               .heads = options->heads,
                               .dtype = sb_parameters_dtype(set)};
    if (bias->positions != SB_POSITIONS_RELATIVE)
        return true;
    bias->table = sb_parameters_add(set, name_join(name, "distance").text,
                                    SB_SHAPE(options->heads, 2 * FARTHEST + 1), zero);
    return bias->table != NULL;
}

sb_tensor *sb_position_bias_forward(const sb_position_bias *bias, int64_t Lq, int64_t Lk, bool *ok)
{
    sb_tensor *y = NULL;
    if (bias->positions == SB_POSITIONS_ALIBI)
        y = sb_alibi(bias->dtype, bias->heads, Lq, Lk);
    else if (bias->positions == SB_POSITIONS_RELATIVE)
        y = sb_relative_bias(bias->table, Lq, Lk);
    else
        return *ok = true, NULL;
    *ok = y != NULL;
    return y;
}
