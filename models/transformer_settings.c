#include "models/transformer_settings.h"

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

/* A number whose 0 is the default. */
static void setting_add_variant(struct setting_table *t, const char *name, double *number,
                                const char *help)
{
    setting_add_number(t, name, number, 0, 1e12, help);
    setting_zero(t, ZERO_IS_DEFAULT_ALONE);
}

/* Variants of published models. */
static void setting_add_variants(struct setting_table *t, sb_transformer_options *o)
{
    setting_add_count(t, "head-size", &o->head_size, 0, 1 << 16,
                      "size of an attention head (0: width / heads)");
    setting_add_choice(t, "biases", &o->biases, biases,
                       "layers that have a bias: all, only the projections of queries, keys and "
                       "values, or none");
    setting_add_flag(t, "no-output-bias", &o->no_output_bias, "no bias of the output's logits");
    setting_add_variant(t, "norm-epsilon", &o->norm_epsilon,
                        "epsilon of the norms (0: 1e-5, of RMS norm 1e-6)");
    setting_add_flag(t, "qk-norm", &o->qk_norm,
                     "normalise queries and keys in each attention head");
    setting_add_variant(t, "score-scale", &o->score_scale,
                        "factor of attention scores (0: 1 / square root of the head size)");
    setting_add_variant(t, "embedding-scale", &o->embedding_scale,
                        "factor of embeddings (0: square root of width)");
    setting_add_count(t, "segments", &o->segments, 0, 1 << 16,
                      "number of segment embeddings; texts are of segment 0 (0: none)");
    setting_add_variant(t, "output-scale", &o->output_scale,
                        "factor of what the logits are computed of (0: 1)");
    setting_add_flag(t, "embedding-norm", &o->embedding_norm, "normalise the embeddings");
}

static void setting_add_positions(struct setting_table *t, sb_transformer_options *o)
{
    setting_add_choice(t, "positions", &o->positions, positions, "positional encoding");
    setting_add_count(t, "positions-longest", &o->longest, 0, 1 << 24,
                      "number of learned positions (0: 512)");
    setting_add_variant(t, "position-scale", &o->position_scale,
                        "factor of learned positions (0: square root of width)");
    setting_add_count(t, "position-offset", &o->position_offset, 0, 1 << 24,
                      "unused rows before the first learned position");
    setting_add_variant(t, "rotary-base", &o->rotary_base, "base of rotary positions (0: 10000)");
    setting_add_variant(t, "rotary-scaling", &o->rotary_scaling,
                        "position interpolation: divisor of rotary positions (0: 1)");
    setting_add_count(t, "rotary-original", &o->rotary_original, 0, 1 << 24,
                      "scaling by frequency (Llama 3): positions of the first training (0: all "
                      "frequencies are scaled)");
    setting_add_variant(t, "rotary-low-factor", &o->rotary_low_factor,
                        "turns in the first training, below which all is scaled (0: 1)");
    setting_add_variant(t, "rotary-high-factor", &o->rotary_high_factor,
                        "turns in the first training, above which nothing is scaled (0: 4)");
    setting_add_count(t, "position-buckets", &o->position_buckets, 0, 1 << 16,
                      "number of buckets of distances (0: 32)");
    setting_add_count(t, "position-distance", &o->position_distance, 0, 1 << 20,
                      "distance from which on positions share the last bucket (0: 128)");
}

void setting_add_transformer(struct setting_table *t, sb_transformer_options *o)
{
    t->group = SETTING_OF_MODEL;
    setting_add_count(t, "width", &o->width, 1, 1 << 20,
                      "model width, the size of embeddings; built-in tasks use 64");
    setting_add_count(t, "heads", &o->heads, 1, 1 << 16, "attention heads");
    setting_add_count(
        t, "key-heads", &o->key_heads, 0, 1 << 16,
        "number of key and value heads, for grouped-query attention (0: as many as heads)");
    setting_add_count(t, "feed-forward", &o->feed_forward, 0, 1 << 24,
                      "hidden size of the feed-forward network (0: 4 x width)");
    setting_add_small(t, "encoder-layers", &o->encoder_layers, 1, 1000,
                      "encoder layers; built-in tasks use 2");
    setting_add_small(t, "decoder-layers", &o->decoder_layers, 1, 1000,
                      "decoder layers; built-in tasks use 2");
    setting_add_choice(t, "norm", &o->norm_place, norm_places,
                       "normalise before or after each sublayer, or both: sandwich");
    setting_add_choice(t, "norm-kind", &o->norm_kind, norm_kinds, "kind of normalisation");
    setting_add_choice(t, "activation", &o->activation, activations,
                       "activation of the feed-forward network");
    setting_add_flag(t, "gated", &o->gated, "use a gated feed-forward network (GLU)");
    setting_add_choice(t, "score", &o->score, scores, "scaling of attention scores");
    setting_add_number(t, "temperature", &o->temperature, 0, 1e6,
                       "extra divisor of attention scores (0: 1)");
    setting_zero(t, ZERO_IS_DEFAULT_ALONE);
    setting_add_choice(t, "attention", &o->attention, algorithms,
                       "attention algorithm; composed stores the weights, tiled does not");
    setting_add_flag(t, "recompute", &o->recompute,
                     "gradient checkpointing: recompute layers in backward to save memory");
    setting_add_positions(t, o);
    setting_add_variants(t, o);
}

void setting_add_ties(struct setting_table *t, bool *tie_embeddings, bool *share_embeddings)
{
    t->group = SETTING_OF_MODEL;
    setting_add_flag(t, "tie-embeddings", tie_embeddings,
                     "use the target's embeddings as weights of the output");
    setting_add_flag(t, "share-embeddings", share_embeddings,
                     "one embedding table for source and target (with --joint-vocabulary)");
}

void setting_add_context(struct setting_table *t, int64_t *context, bool *running_text)
{
    t->group = SETTING_OF_MODEL;
    setting_add_count(t, "context", context, 0, 1 << 24,
                      "symbols that a language model reads at a time (0: all)");
    setting_add_flag(t, "running-text", running_text,
                     "treat a prompt as text from the middle of a document: add no begin symbol");
}

void setting_add_pooling(struct setting_table *t, sb_pooling *pooling, sb_activation *hidden)
{
    t->group = SETTING_OF_MODEL;
    setting_add_choice(t, "pooling", pooling, poolings,
                       "classify by the mean of the encoder's outputs, or by the first");
    setting_add_choice(t, "hidden", hidden, activations,
                       "activation of a hidden layer before the labels (identity: none)");
}

void setting_add_dropout(struct setting_table *t, sb_transformer_options *o)
{
    t->group = SETTING_OF_TRAINING;
    setting_add_number(t, "dropout", &o->dropout, 0, 0.999, "dropout probability in training");
    setting_add_number(t, "attention-dropout", &o->attention_dropout, 0, 0.999,
                       "dropout of attention weights (0: as --dropout)");
    setting_zero(t, ZERO_IS_DEFAULT);
    setting_add_number(t, "feed-forward-dropout", &o->feed_forward_dropout, 0, 0.999,
                       "dropout of hidden units of the feed-forward network");
    setting_add_choice(
        t, "precision", &o->precision, precisions,
        "dtype of activations in training; weights stay f32. tf32: f32, with products "
        "rounded to TF32 on a GPU (no effect on the CPU)");
}

void setting_add_smoothing(struct setting_table *t, double *label_smoothing)
{
    t->group = SETTING_OF_TRAINING;
    setting_add_number(t, "label-smoothing", label_smoothing, 0, 0.999,
                       "label smoothing: probability moved from the target to all symbols equally");
}
