#include "nn/transformer.h"

static bool in_range(const char *what, int64_t value, int64_t most)
{
    if (value >= 1 && value <= most)
        return true;
    return sb_fail("transformer: %s is %lld, not in 1..%lld", what, (long long)value,
                   (long long)most);
}

/* Whether a choice is one of its enum, 0..last. */
static bool is_one(const char *what, int value, int last)
{
    return (value >= 0 && value <= last) ||
           sb_fail("transformer: %s is %d, not in 0..%d", what, value, last);
}

static bool divides(const char *what, int64_t value, int ranks)
{
    return value % ranks == 0 || sb_fail("transformer: %s %lld cannot be cut over %d ranks", what,
                                         (long long)value, ranks);
}

/* Whether each rank can have as much as the others. */
static bool check_ranks(const sb_transformer_options *o)
{
    const int ranks = sb_communicator_size(o->ranks);
    return divides("heads", o->heads, ranks) && divides("key_heads", o->key_heads, ranks) &&
           divides("feed_forward", o->feed_forward, ranks);
}

static bool check(const sb_transformer_options *o)
{
    if (!in_range("width", o->width, 1 << 20) || !in_range("heads", o->heads, 1 << 16) ||
        !in_range("key_heads", o->key_heads, 1 << 16) ||
        !in_range("feed_forward", o->feed_forward, 1 << 24) ||
        !in_range("encoder_layers", o->encoder_layers, 1000) ||
        !in_range("decoder_layers", o->decoder_layers, 1000) ||
        !in_range("longest", o->longest, 1 << 24))
        return false;
    if (o->width % o->heads)
        return sb_fail("transformer: width %lld is not a multiple of %lld heads",
                       (long long)o->width, (long long)o->heads);
    if (o->heads % o->key_heads)
        return sb_fail("transformer: %lld heads are not a multiple of %lld key heads",
                       (long long)o->heads, (long long)o->key_heads);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return sb_fail("transformer: dropout is %g, not in [0, 1)", o->dropout);
    if (!(o->temperature > 0 && o->temperature <= 1e6))
        return sb_fail("transformer: temperature is %g, not in (0, 1e6]", o->temperature);
    if (!is_one("norm_place", (int)o->norm_place, SB_NORM_POST) ||
        !is_one("norm_kind", (int)o->norm_kind, SB_RMS_NORM) ||
        !is_one("activation", (int)o->activation, SB_SIGMOID) ||
        !is_one("score", (int)o->score, SB_COSINE) ||
        !is_one("precision", (int)o->precision, SB_PRECISION_BF16) ||
        !is_one("positions", (int)o->positions, SB_POSITIONS_NONE))
        return false;
    if (o->positions == SB_POSITIONS_SINUSOIDAL && o->width % 2)
        return sb_fail("transformer: sinusoidal positions need an even width, not %lld",
                       (long long)o->width);
    if (o->positions == SB_POSITIONS_ROTARY && o->width / o->heads % 2)
        return sb_fail("transformer: rotary positions need an even head size, not %lld",
                       (long long)(o->width / o->heads));
    return check_ranks(o);
}

bool sb_transformer_complete(const sb_transformer_options *options,
                             sb_transformer_options *complete)
{
    sb_transformer_options o = options ? *options : (sb_transformer_options){0};
    o.width = o.width ? o.width : 128;
    o.heads = o.heads ? o.heads : 4;
    o.key_heads = o.key_heads ? o.key_heads : o.heads;
    o.feed_forward = o.feed_forward ? o.feed_forward : 4 * o.width;
    o.encoder_layers = o.encoder_layers ? o.encoder_layers : 3;
    o.decoder_layers = o.decoder_layers ? o.decoder_layers : 3;
    o.activation = o.activation ? o.activation : SB_RELU;
    o.temperature = o.temperature != 0 ? o.temperature : 1;
    o.longest = o.longest ? o.longest : 512;
    *complete = o;
    return check(&o);
}
