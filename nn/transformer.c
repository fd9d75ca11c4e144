#include "nn/layer.h"
#include "tensor/failure.h"
#include <string.h>

static bool in_range(const char *who, const char *what, int64_t value, int64_t most)
{
    if (value >= 1 && value <= most)
        return true;
    return sb_fail("%s: %s is %lld, not in 1..%lld; 0 gives the default", who, what,
                   (long long)value, (long long)most);
}

/* Checks that a choice is a value of its enum, 0..last. */
static bool is_one(const char *who, const char *what, int value, int last)
{
    return (value >= 0 && value <= last) ||
           sb_fail("%s: %s is %d, not in 0..%d", who, what, value, last);
}

/* Checks a number whose 0 is the default. */
static bool is_positive(const char *who, const char *what, double value)
{
    return (value >= 0 && value <= 1e12) ||
           sb_fail("%s: %s is %g; it must be positive, or 0 for the default", who, what, value);
}

/* Checks that a size can be split equally over ranks. */
static bool divides(const char *who, const char *what, int64_t value, sb_communicator *c)
{
    const int ranks = sb_communicator_size(c);
    return value % ranks == 0 ||
           sb_fail("%s: %s %lld cannot be split over %d ranks", who, what, (long long)value, ranks);
}

/* ---- the checks of each use ---- */

static bool check_dropout(const char *who, const sb_transformer_options *o)
{
    return check_share(who, "dropout", o->dropout);
}

static bool check_positions(const char *who, const sb_transformer_options *o)
{
    const int64_t buckets = layer_buckets(o), distance = layer_distance(o);
    if (!is_one(who, "positions", (int)o->positions, SB_POSITIONS_BUCKETS))
        return false;
    if (buckets % 2 || buckets < 4 || buckets > 1 << 16)
        return sb_fail("%s: position_buckets is %lld; it must be even and in 4..%d", who,
                       (long long)buckets, 1 << 16);
    return (distance > buckets / 2 && distance <= 1 << 20) ||
           sb_fail("%s: position_distance is %lld, not in %lld..%d: above half of the buckets", who,
                   (long long)distance, (long long)buckets / 2 + 1, 1 << 20);
}

static bool check_heads(const char *who, const sb_transformer_options *o)
{
    return in_range(who, "heads", o->heads, 1 << 16) && divides(who, "heads", o->heads, o->ranks);
}

static bool check_frequencies(const char *who, const sb_transformer_options *o)
{
    const double low = sb_option(o->rotary_low_factor, 1);
    const double high = sb_option(o->rotary_high_factor, 4);
    if (o->rotary_original < 0 || o->rotary_original > 1 << 24)
        return sb_fail("%s: rotary_original is %lld, not in 0..%d; 0 scales all frequencies", who,
                       (long long)o->rotary_original, 1 << 24);
    return (low > 0 && low < high && high <= 1e12) ||
           sb_fail("%s: rotary_low_factor is %g, rotary_high_factor is %g; both must be positive, "
                   "the first below the second",
                   who, low, high);
}

static bool check_attention(const char *who, const sb_transformer_options *o)
{
    if (!in_range(who, "key_heads", o->key_heads, 1 << 16) ||
        !in_range(who, "key_width", o->key_width, 1 << 20) ||
        !in_range(who, "value_width", o->value_width, 1 << 20))
        return false;
    if (o->head_size < 0 || o->head_size > 1 << 16)
        return sb_fail("%s: head_size is %lld, not in 0..%d; 0 gives width / heads", who,
                       (long long)o->head_size, 1 << 16);
    if (o->head_size == 0 && o->width % o->heads)
        return sb_fail("%s: width %lld is not a multiple of %lld heads; choose heads that divide "
                       "the width (4 by default), or give a head_size",
                       who, (long long)o->width, (long long)o->heads);
    if (o->heads % o->key_heads)
        return sb_fail("%s: %lld heads are not a multiple of %lld key heads; choose key_heads that "
                       "divide the heads (as many by default)",
                       who, (long long)o->heads, (long long)o->key_heads);
    if (!(o->temperature > 0 && o->temperature <= 1e6))
        return sb_fail("%s: temperature is %g, not in (0, 1e6]; 0 gives the default", who,
                       o->temperature);
    if (o->positions == SB_POSITIONS_ROTARY && layer_head_size(o) % 2)
        return sb_fail("%s: rotary positions need an even head size, not %lld", who,
                       (long long)layer_head_size(o));
    return check_dropout(who, o) && check_share(who, "attention_dropout", o->attention_dropout) &&
           is_one(who, "score", (int)o->score, SB_SCORE_COSINE) &&
           is_one(who, "biases", (int)o->biases, SB_BIASES_NONE) &&
           is_positive(who, "score_scale", o->score_scale) &&
           is_positive(who, "rotary_base", o->rotary_base) &&
           is_positive(who, "rotary_scaling", o->rotary_scaling) && check_frequencies(who, o) &&
           check_not_negative(who, "rotary_interval", (double)o->rotary_interval) &&
           is_one(who, "attention", (int)o->attention, SB_ATTENTION_TILED) &&
           is_one(who, "precision", (int)o->precision, SB_PRECISION_TF32) &&
           divides(who, "key_heads", o->key_heads, o->ranks);
}

static bool check_feed_forward(const char *who, const sb_transformer_options *o)
{
    return in_range(who, "feed_forward", o->feed_forward, 1 << 24) &&
           check_share(who, "feed_forward_dropout", o->feed_forward_dropout) &&
           is_one(who, "activation", (int)o->activation, SB_ACTIVATION_SIGMOID) &&
           divides(who, "feed_forward", o->feed_forward, o->ranks);
}

static bool check_norm(const char *who, const sb_transformer_options *o)
{
    return is_one(who, "norm_place", (int)o->norm_place, SB_NORM_SANDWICH) &&
           is_one(who, "norm_kind", (int)o->norm_kind, SB_NORM_KIND_RMS) &&
           is_positive(who, "norm_epsilon", o->norm_epsilon);
}

static bool check_embedding(const char *who, const sb_transformer_options *o)
{
    const bool table =
        o->positions == SB_POSITIONS_SINUSOIDAL || o->positions == SB_POSITIONS_HALVES;
    if (table && o->width % 2)
        return sb_fail("%s: sinusoidal positions need an even width, not %lld", who,
                       (long long)o->width);
    if (o->position_offset < 0 || o->position_offset > 1 << 24)
        return sb_fail("%s: position_offset is %lld, not in 0..%d", who,
                       (long long)o->position_offset, 1 << 24);
    if (o->segments < 0 || o->segments > 1 << 16)
        return sb_fail("%s: segments is %lld, not in 0..%d; 0 gives none", who,
                       (long long)o->segments, 1 << 16);
    return check_dropout(who, o) &&
           in_range(who, "positions_longest", o->positions_longest, 1 << 24) &&
           is_positive(who, "embedding_scale", o->embedding_scale) &&
           is_positive(who, "position_scale", o->position_scale) &&
           is_positive(who, "output_scale", o->output_scale) &&
           is_one(who, "precision", (int)o->precision, SB_PRECISION_TF32);
}

static bool check_stack(const char *who, const sb_transformer_options *o)
{
    return in_range(who, "encoder_layers", o->encoder_layers, 1000) &&
           in_range(who, "decoder_layers", o->decoder_layers, 1000);
}

static bool check(const char *who, unsigned uses, const sb_transformer_options *o)
{
    static const struct {
        unsigned use;
        bool (*passes)(const char *who, const sb_transformer_options *o);
    } checks[] = {
        {USES_HEADS, check_heads},         {USES_ATTENTION, check_attention},
        {USES_POSITIONS, check_positions}, {USES_FEED_FORWARD, check_feed_forward},
        {USES_NORM, check_norm},           {USES_EMBEDDING, check_embedding},
        {USES_STACK, check_stack},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (uses & checks[i].use && !checks[i].passes(who, o))
            return false;
    return true;
}

/* ---- completion ---- */

bool layer_complete(const char *who, unsigned uses, const sb_transformer_options *options,
                    sb_transformer_options *complete)
{
    sb_transformer_options o = options ? *options : (sb_transformer_options){0};
    o.width = o.width ? o.width : 128;
    *complete = o;
    if (!in_range(who, "width", o.width, 1 << 20)) /* so that 4 C does not overflow */
        return false;
    o.heads = o.heads ? o.heads : 4;
    o.key_heads = o.key_heads ? o.key_heads : o.heads;
    o.key_width = o.key_width ? o.key_width : o.width;
    o.value_width = o.value_width ? o.value_width : o.key_width;
    o.feed_forward = o.feed_forward ? o.feed_forward : 4 * o.width;
    o.encoder_layers = o.encoder_layers ? o.encoder_layers : 3;
    o.decoder_layers = o.decoder_layers ? o.decoder_layers : 3;
    o.activation = o.activation ? o.activation : SB_ACTIVATION_RELU;
    o.temperature = sb_option(o.temperature, 1);
    o.positions_longest = o.positions_longest ? o.positions_longest : 512;
    *complete = o;
    return check(who, uses, &o);
}

bool sb_transformer_complete(const sb_transformer_options *options,
                             sb_transformer_options *complete)
{
    if (!complete)
        return fail_null("transformer", "complete");
    return layer_complete("transformer", USES_ALL, options, complete);
}

/* ---- inits of layers ---- */

bool layer_begin(struct layer_start *start, const char *who, void *layer, size_t size,
                 sb_parameters *set, const char *name)
{
    if (layer)
        memset(layer, 0, size);
    if (!layer || !set || !name)
        return fail_null(who, !layer ? "layer" : !set ? "set" : "name");
    *start = (struct layer_start){layer, size, set, parameters_mark(set)};
    return true;
}

bool layer_end(const struct layer_start *start, bool made)
{
    if (made)
        return true;
    memset(start->layer, 0, start->size);
    parameters_return(start->set, &start->mark);
    return false;
}
