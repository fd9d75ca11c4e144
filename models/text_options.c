/* Names, ranges and kinds of the options of text models, and what is wrong with given ones. */
#include "models/kinds.h"
#include "models/text_model.h"
#include "tensor/failure.h"
#include <string.h>

static const char *const norm_places[] = {
    [SB_NORM_PRE] = "pre", [SB_NORM_POST] = "post", [SB_NORM_SANDWICH] = "sandwich", NULL};
static const char *const norm_kinds[] = {
    [SB_NORM_KIND_LAYER] = "layer", [SB_NORM_KIND_RMS] = "rms", NULL};
static const char *const activations[] = {
    [SB_ACTIVATION_IDENTITY] = "identity", [SB_ACTIVATION_RELU] = "relu",
    [SB_ACTIVATION_GELU] = "gelu",         [SB_ACTIVATION_GELU_TANH] = "gelu-tanh",
    [SB_ACTIVATION_SILU] = "silu",         [SB_ACTIVATION_TANH] = "tanh",
    [SB_ACTIVATION_SIGMOID] = "sigmoid",   NULL};
static const char *const scores[] = {[SB_SCORE_SCALED] = "scaled",
                                     [SB_SCORE_BALANCED] = "balanced",
                                     [SB_SCORE_COSINE] = "cosine",
                                     NULL};
static const char *const precisions[] = {
    [SB_PRECISION_F32] = "f32", [SB_PRECISION_BF16] = "bf16", [SB_PRECISION_TF32] = "tf32", NULL};
static const char *const algorithms[] = {[SB_ATTENTION_AUTOMATIC] = "auto",
                                         [SB_ATTENTION_COMPOSED] = "composed",
                                         [SB_ATTENTION_TILED] = "tiled",
                                         NULL};
static const char *const positions[] = {[SB_POSITIONS_SINUSOIDAL] = "sinusoidal",
                                        [SB_POSITIONS_LEARNED] = "learned",
                                        [SB_POSITIONS_ROTARY] = "rotary",
                                        [SB_POSITIONS_ALIBI] = "alibi",
                                        [SB_POSITIONS_RELATIVE] = "relative",
                                        [SB_POSITIONS_NONE] = "none",
                                        [SB_POSITIONS_HALVES] = "halves",
                                        [SB_POSITIONS_BUCKETS] = "buckets",
                                        NULL};

static const char *const biases[] = {
    [SB_BIASES_ALL] = "all", [SB_BIASES_QKV] = "qkv", [SB_BIASES_NONE] = "none", NULL};
static const char *const poolings[] = {
    [SB_POOLING_MEAN] = "mean", [SB_POOLING_FIRST] = "first", NULL};

#define ROW(member) FIELD(sb_transformer_options, member)

const struct field transformer_fields[] = {
    {"width", ROW(width), "model width, the size of embeddings; built-in tasks use 64", 1, 1 << 20},
    {"heads", ROW(heads), "attention heads", 1, 1 << 16},
    {"key-heads", ROW(key_heads),
     "number of key and value heads, for grouped-query attention (0: as many as heads)", 0,
     1 << 16},
    {"feed-forward", ROW(feed_forward), "hidden size of the feed-forward network (0: 4 x width)", 0,
     1 << 24},
    {"encoder-layers", ROW(encoder_layers), "encoder layers; built-in tasks use 2", 1, 1000,
     .models = "seq2seq classifier"},
    {"decoder-layers", ROW(decoder_layers), "decoder layers; built-in tasks use 2", 1, 1000,
     .models = "seq2seq language_model"},
    {"norm", ROW(norm_place), "normalise before or after each sublayer, or both: sandwich",
     .choices = norm_places},
    {"norm-kind", ROW(norm_kind), "kind of normalisation", .choices = norm_kinds},
    {"activation", ROW(activation), "activation of the feed-forward network",
     .choices = activations},
    {"gated", ROW(gated), "use a gated feed-forward network (GLU)"},
    {"score", ROW(score), "scaling of attention scores", .choices = scores},
    {"temperature", ROW(temperature), "extra divisor of attention scores (0: 1)", 0, 1e6,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"attention", ROW(attention),
     "attention algorithm; composed stores the weights, tiled does not", .choices = algorithms},
    {"recompute", ROW(recompute),
     "gradient checkpointing: recompute layers in backward to save memory"},
    {"positions", ROW(positions), "positional encoding", .choices = positions},
    {"positions-longest", ROW(positions_longest), "number of learned positions (0: 512)", 0,
     1 << 24},
    {"position-scale", ROW(position_scale), "factor of learned positions (0: sqrt(width))", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"position-offset", ROW(position_offset), "unused rows before the first learned position", 0,
     1 << 24},
    {"rotary-base", ROW(rotary_base), "base of rotary positions (0: 10000)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"rotary-scaling", ROW(rotary_scaling),
     "position interpolation: divisor of rotary positions (0: 1)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"rotary-original", ROW(rotary_original),
     "scaling by frequency (Llama 3): positions of the first training (0: all frequencies are "
     "scaled)",
     0, 1 << 24},
    {"rotary-low-factor", ROW(rotary_low_factor),
     "turns in the first training, below which all is scaled (0: 1)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"rotary-high-factor", ROW(rotary_high_factor),
     "turns in the first training, above which nothing is scaled (0: 4)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"rotary-interval", ROW(rotary_interval),
     "every N-th layer has no rotary positions (0: all have)", 0, 1 << 24},
    {"position-buckets", ROW(position_buckets), "number of buckets of distances (0: 32)", 0,
     1 << 16},
    {"position-distance", ROW(position_distance),
     "distance from which on positions share the last bucket (0: 128)", 0, 1 << 20},
    {"head-size", ROW(head_size), "size of an attention head (0: width / heads)", 0, 1 << 16},
    {"biases", ROW(biases),
     "layers that have a bias: all, only the projections of queries, keys and values, or none",
     .choices = biases},
    {"no-output-bias", ROW(no_output_bias), "no bias of the output's logits"},
    {"norm-epsilon", ROW(norm_epsilon), "epsilon of the norms (0: 1e-5, of RMS norm 1e-6)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"qk-norm", ROW(qk_norm), "normalise queries and keys in each attention head"},
    {"score-scale", ROW(score_scale),
     "factor of attention scores (0: 1 / square root of the head size)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"embedding-scale", ROW(embedding_scale), "factor of embeddings (0: square root of width)", 0,
     1e12, .zero = ZERO_IS_DEFAULT_ALONE},
    {"segments", ROW(segments), "number of segment embeddings; texts are of segment 0 (0: none)", 0,
     1 << 16},
    {"output-scale", ROW(output_scale), "factor of what the logits are computed of (0: 1)", 0, 1e12,
     .zero = ZERO_IS_DEFAULT_ALONE},
    {"embedding-norm", ROW(embedding_norm), "normalise the embeddings"},
    {0}};

const struct field dropout_fields[] = {
    {"dropout", ROW(dropout), "dropout probability in training", 0, 0.999},
    {"attention-dropout", ROW(attention_dropout), "dropout of attention weights (0: as --dropout)",
     0, 0.999, .zero = ZERO_IS_DEFAULT},
    {"feed-forward-dropout", ROW(feed_forward_dropout),
     "dropout of hidden units of the feed-forward network", 0, 0.999},
    {"precision", ROW(precision),
     "dtype of activations in training; weights stay f32. tf32: f32, with products rounded to TF32 "
     "on a GPU (no effect on the CPU)",
     .choices = precisions},
    {0}};
#undef ROW

#define ROW(member) FIELD(sb_text_model_options, member)
const struct field tie_fields[] = {
    {"tie-embeddings", ROW(tie_embeddings), "use the target's embeddings as weights of the output",
     .models = "seq2seq language_model"},
    {"share-embeddings", ROW(share_embeddings),
     "one embedding table for source and target (with --joint-vocabulary)",
     .kind = SETTING_OF_FILES, .models = "seq2seq"},
    {0}};

const struct field smoothing_fields[] = {
    {"label-smoothing", ROW(label_smoothing),
     "label smoothing: probability moved from the target to all symbols equally", 0, 0.999},
    {0}};

const struct field own_fields[] = {
    {"context", ROW(context), "symbols that a language model reads at a time (0: all)", 0, 1 << 24,
     .models = "language_model"},
    {"running-text", ROW(running_text),
     "treat a prompt as text from the middle of a document: add no begin symbol",
     .models = "language_model"},
    {"pooling", ROW(pooling), "classify by the mean of the encoder's outputs, or by the first",
     .choices = poolings, .models = "classifier"},
    {"hidden", ROW(hidden), "activation of a hidden layer before the labels (identity: none)",
     .choices = activations, .models = "classifier"},
    {0}};
#undef ROW

/* What only some kinds have, and what all have together. */
static const struct field kind_fields[] = {{.rows = tie_fields}, {.rows = own_fields}, {0}};
const struct field text_fields[] = {
    {.rows = transformer_fields, .at = offsetof(sb_text_model_options, transformer)},
    {.rows = tie_fields},
    {.rows = dropout_fields, .at = offsetof(sb_text_model_options, transformer)},
    {.rows = smoothing_fields},
    {.rows = own_fields},
    {0}};
static const sb_text_model_options no_options;

void text_options_of_kind(sb_text_model_options *o, const sb_model_kind *kind)
{
    struct field f;
    for (int i = 0; f = field_at(kind_fields, i), f.name; i++)
        if (!field_is_of(&f, kind))
            field_write(&f, o, field_read(&f, &no_options).text);
}

static bool text_options_has(const sb_text_model_options *o, const sb_model_kind *kind)
{
    struct field f;
    for (int i = 0; f = field_at(kind_fields, i), f.name; i++) {
        const struct field_text given = field_read(&f, o);
        if (!field_is_of(&f, kind) && strcmp(given.text, field_read(&f, &no_options).text) != 0)
            return sb_fail("%s: the option %s is %s; this kind of models does not have it",
                           kind->name, f.name, given.text);
    }
    return true;
}

bool text_options_check(const sb_text_model_options *o, const sb_model_kind *kind)
{
    const char *owner = kind->name;
    const sb_transformer_options *t = &o->transformer;
    if ((unsigned)o->pooling > SB_POOLING_FIRST)
        return sb_fail("%s: there is no pooling %d", owner, (int)o->pooling);
    if ((unsigned)o->hidden > SB_ACTIVATION_SIGMOID)
        return sb_fail("%s: there is no activation %d", owner, (int)o->hidden);
    if (!text_options_has(o, kind) || !check_share(owner, "label_smoothing", o->label_smoothing))
        return false;
    if (o->context < 0 || o->context > 1 << 24)
        return sb_fail("%s: context is %lld, not in 0..%d", owner, (long long)o->context, 1 << 24);
    return t->positions != SB_POSITIONS_LEARNED || o->context <= t->positions_longest ||
           sb_fail("%s: context is %lld, but only %lld positions are learned; raise the longest "
                   "position, or take another positional encoding",
                   owner, (long long)o->context, (long long)t->positions_longest);
}
