#include "models/text_model.h"
#include "models/classifier_kind.h"
#include "models/data/data_source.h"
#include "models/decoding/generator.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/language_kind.h"
#include "models/seq2seq_kind.h"
#include "models/text/labels_parts.h"
#include "nn/flat.h"
#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

static bool text_model_check(const struct text_options *o, const struct text_words *words,
                             const char *owner)
{
    const sb_transformer_options *t = &o->common.transformer;
    if ((unsigned)o->own.pooling > SB_POOLING_FIRST)
        return sb_fail("%s: there is no pooling %d", owner, (int)o->own.pooling);
    if ((unsigned)o->own.hidden > SB_ACTIVATION_SIGMOID)
        return sb_fail("%s: there is no activation %d", owner, (int)o->own.hidden);
    if (!check_share(owner, "label_smoothing", o->common.label_smoothing))
        return false;
    if (o->common.share_embeddings && words->source != words->target)
        return sb_fail("%s: shared embeddings need one vocabulary for source and target", owner);
    if (o->own.context < 0 || o->own.context > 1 << 24)
        return sb_fail("%s: context is %lld, not in 0..%d", owner, (long long)o->own.context,
                       1 << 24);
    return t->positions != SB_POSITIONS_LEARNED || o->own.context <= t->longest ||
           sb_fail("%s: context is %lld, but only %lld positions are learned; raise the longest "
                   "position, or take another positional encoding",
                   owner, (long long)o->own.context, (long long)t->longest);
}

/* Takes the vocabularies and labels. */
static bool text_model_learn(struct text_model *m, const struct text_words *words)
{
    m->source = sb_vocabulary_retain(words->source);
    m->target = sb_vocabulary_retain(words->target);
    if (!words->labels)
        return true;
    m->labels = sb_labels_new(words->labels, words->count);
    const int64_t different = m->labels ? sb_labels_count(m->labels) : 0;
    return m->labels && (different == words->count ||
                         sb_fail("%s: of %lld labels only %lld are different", m->kind->model->name,
                                 (long long)words->count, (long long)different));
}

static bool text_model_add_parts(struct text_model *m)
{
    const sb_transformer_options *o = &m->options.common.transformer;
    const int64_t Vs = sb_vocabulary_size(m->source), Vt = sb_vocabulary_size(m->target);
    if (m->source && !(m->encoder = sb_encoder_new(m->weights, "encoder", Vs, o)))
        return false;
    sb_tensor *shared = m->options.common.share_embeddings ? sb_encoder_table(m->encoder) : NULL;
    if (m->kind->target &&
        !(m->decoder = sb_decoder_new(m->weights, "decoder", Vt, o, m->encoder != NULL, shared)))
        return false;
    const bool biased = sb_transformer_output_bias(o);
    if (m->options.own.hidden &&
        !sb_linear_layer_init(&m->hidden, m->weights, "hidden", o->width, o->width, biased))
        return false;
    sb_tensor *tied = m->options.common.tie_embeddings ? sb_decoder_table(m->decoder) : NULL;
    if (!sb_output_head_init(&m->output, m->weights, "output", o->width,
                             m->labels ? sb_labels_count(m->labels) : Vt, biased, tied))
        return false;
    m->output.scale = o->output_scale;
    m->output.padded = tied && o->padded;
    m->output.padding_id = o->padding_id;
    return true;
}

void *text_model_new(size_t size, const struct text_kind *kind, sb_parameters *weights,
                     const struct text_words *words, const struct text_options *options)
{
    struct text_options o = *options;
    if (!sb_transformer_complete(&o.common.transformer, &o.common.transformer) ||
        !text_model_check(&o, words, kind->model->name))
        return NULL;
    struct text_model *m = memory_new(size);
    if (!m)
        return sb_fail("%s: out of memory", kind->model->name);
    *m = (struct text_model){.kind = kind, .options = o, .weights = weights};
    const struct parameters_mark mark = parameters_mark(weights);
    if (text_model_learn(m, words) && text_model_add_parts(m))
        return m;
    text_model_free(m);
    parameters_return(weights, &mark);
    return NULL;
}

void text_model_free(void *self)
{
    struct text_model *m = self;
    if (!m)
        return;
    sb_encoder_free(m->encoder);
    sb_decoder_free(m->decoder);
    sb_labels_free(m->labels);
    sb_vocabulary_release(m->source);
    sb_vocabulary_release(m->target);
    memory_free(m);
}

bool text_model_fits(const char *owner, const sb_model *model, const sb_source *source)
{
    const bool language = model->kind == &language_model_kind;
    const sb_data *d = model->kind == &classifier_kind ? labelled_of_source(source)
                       : model->kind == &seq2seq_kind  ? data_of_source(source)
                                                       : NULL;
    const sb_windows *w = language ? windows_of_source(source) : NULL;
    const struct text_model *m = model->self;
    if ((!d && !w) || !m)
        return true;
    if ((d && !description_same_vocabulary(d->source, m->source)) ||
        !description_same_vocabulary(d ? d->target : sb_windows_vocabulary(w), m->target))
        return sb_fail("%s: the data have other vocabularies than the model; make the data with "
                       "the vocabularies of the model",
                       owner);
    bool fits = true;
    for (int64_t i = 0; d && fits && i < sb_labels_count(d->labels); i++)
        fits = sb_labels_find(m->labels, sb_labels_text(d->labels, i)) == i;
    return fits ||
           sb_fail("%s: the data have the labels %s, in this order, but the model has %s; "
                   "make the data with the labels of the model",
                   owner, labels_text(d->labels, NULL).text, labels_text(m->labels, NULL).text);
}

/* ---- forward ---- */

/* (B, L, C) -> (B, C). The mean is a product with the weights of the positions, (B, 1, L). */
static sb_tensor *text_model_pool(const struct text_model *m, sb_tensor *y, const sb_batch *batch)
{
    const int64_t B = sb_tensor_dim(y, 0), L = sb_tensor_dim(y, 1), C = sb_tensor_dim(y, 2);
    if (m->options.own.pooling == SB_POOLING_FIRST)
        return sb_reshape(sb_slice(y, 1, 0, 1), SB_SHAPE(B, C));
    sb_tensor *weights = sb_batch_get(batch, "pooling");
    weights = weights ? sb_cast(weights, sb_tensor_dtype(y)) : NULL;
    weights = weights ? sb_reshape(weights, SB_SHAPE(B, 1, L)) : NULL;
    return weights ? sb_reshape(sb_matmul(weights, y), SB_SHAPE(B, C)) : NULL;
}

static sb_tensor *text_model_hidden(const struct text_model *m, sb_tensor *y)
{
    return y && m->options.own.hidden
               ? sb_linear_layer_forward(&m->hidden, y, m->options.own.hidden)
               : y;
}

/* The segments of the source, which a batch may lack. */
static sb_tensor *text_model_segments(const sb_batch *batch)
{
    for (int i = 0; i < batch->parts && i < SB_BATCH_PARTS; i++)
        if (strcmp(batch->part[i].name, "segments") == 0)
            return batch->part[i].t;
    return NULL;
}

/* The decoder's outputs (B, Lt, C); without one, those of the encoder, pooled: (B, C). */
static sb_tensor *text_model_forward(const struct text_model *m, const sb_batch *batch,
                                     const sb_seq2seq_weights *weights)
{
    const struct text_kind *kind = m->kind;
    sb_tensor *memory = NULL, *lengths = NULL;
    if (m->encoder) {
        sb_tensor *source = sb_batch_get(batch, kind->source);
        lengths = source ? sb_batch_get(batch, kind->source_lengths) : NULL;
        memory = lengths
                     ? sb_encoder_forward_segments(m->encoder, source, text_model_segments(batch),
                                                   lengths, weights ? weights->encoder : NULL)
                     : NULL;
        if (!memory)
            return NULL;
    }
    if (!m->decoder)
        return text_model_hidden(m, text_model_pool(m, memory, batch));
    sb_tensor *target = sb_batch_get(batch, kind->target);
    return target ? sb_decoder_forward(m->decoder, target, memory, lengths,
                                       weights ? &weights->decoder : NULL)
                  : NULL;
}

sb_tensor *text_model_logits(const struct text_model *m, const sb_batch *batch,
                             const sb_seq2seq_weights *weights)
{
    sb_tensor *y = text_model_forward(m, batch, weights);
    return y ? sb_output_head_logits(&m->output, y) : NULL;
}

sb_tensor *text_model_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    const struct text_model *m = self;
    const sb_cross_entropy_options options = {
        .label_smoothing = loss == SB_LOSS_COST ? 0 : m->options.common.label_smoothing,
        .reduction = loss == SB_LOSS_MEAN ? SB_REDUCE_MEAN : SB_REDUCE_SUM};
    sb_tensor *y = text_model_forward(m, batch, NULL),
              *expected = y ? sb_batch_get(batch, m->kind->expected) : NULL;
    return expected ? sb_output_head_loss(&m->output, y, expected, &options) : NULL;
}

/* ---- attention ---- */

/* The maps of encoder, self- and cross-attention, in this order, with their lengths. */
static bool text_model_map(const struct text_model *m, const sb_batch *batch,
                           sb_tensor *const weights[], sb_attention_map map[])
{
    const int E = sb_encoder_layers(m->encoder), D = sb_decoder_layers(m->decoder);
    sb_tensor *source = m->encoder ? sb_batch_get(batch, m->kind->source_lengths) : NULL,
              *target = m->decoder ? sb_batch_get(batch, m->kind->target_lengths) : NULL;
    for (int i = 0; i < E; i++)
        map[i] = (sb_attention_map){weights[i], source, source, false};
    for (int i = E; i < E + D; i++)
        map[i] = (sb_attention_map){weights[i], target, target, true};
    for (int i = E + D; m->encoder && i < E + 2 * D; i++)
        map[i] = (sb_attention_map){weights[i], target, source, false};
    return (source || !m->encoder) && (target || !m->decoder);
}

bool text_model_attentions(const void *self, const sb_batch *batch, sb_attentions *a)
{
    const struct text_model *m = self;
    const int E = sb_encoder_layers(m->encoder), D = sb_decoder_layers(m->decoder);
    *a = (sb_attentions){.maps = E + D + (m->encoder ? D : 0)};
    a->map = memory_new((size_t)a->maps * sizeof *a->map);
    sb_tensor **weights = memory_new((size_t)a->maps * sizeof *weights);
    bool ok = (a->map && weights) || sb_fail("%s: out of memory", m->kind->model->name);
    if (ok) {
        const sb_seq2seq_weights into = {weights,
                                         {weights + E, m->encoder ? weights + E + D : NULL}};
        sb_tensor *y = text_model_forward(m, batch, &into);
        sb_tensor *expected = y ? sb_batch_get(batch, m->kind->expected) : NULL;
        a->loss = expected ? sb_output_head_loss(&m->output, y, expected, NULL) : NULL;
        ok = a->loss && text_model_map(m, batch, weights, a->map);
    }
    memory_free(weights);
    if (!ok)
        memory_free(a->map);
    return ok;
}

/* ---- options ---- */

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
    {"encoder-layers", ROW(encoder_layers), "encoder layers; built-in tasks use 2", 1, 1000},
    {"decoder-layers", ROW(decoder_layers), "decoder layers; built-in tasks use 2", 1, 1000},
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
    {"positions-longest", ROW(longest), "number of learned positions (0: 512)", 0, 1 << 24},
    {"position-scale", ROW(position_scale), "factor of learned positions (0: square root of width)",
     0, 1e12, .zero = ZERO_IS_DEFAULT_ALONE},
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

#define ROW(member) FIELD(sb_seq2seq_options, member)
const struct field tie_fields[] = {
    {"tie-embeddings", ROW(tie_embeddings), "use the target's embeddings as weights of the output"},
    {"share-embeddings", ROW(share_embeddings),
     "one embedding table for source and target (with --joint-vocabulary)"},
    {0}};

const struct field smoothing_fields[] = {
    {"label-smoothing", ROW(label_smoothing),
     "label smoothing: probability moved from the target to all symbols equally", 0, 0.999},
    {0}};
#undef ROW

#define ROW(member) FIELD(struct text_own, member)
const struct field text_own_fields[] = {
    {"context", ROW(context), "symbols that a language model reads at a time (0: all)", 0, 1 << 24},
    {"running-text", ROW(running_text),
     "treat a prompt as text from the middle of a document: add no begin symbol"},
    {"pooling", ROW(pooling), "classify by the mean of the encoder's outputs, or by the first",
     .choices = poolings},
    {"hidden", ROW(hidden), "activation of a hidden layer before the labels (identity: none)",
     .choices = activations},
    {0}};
#undef ROW

/* What all kinds have together. */
static const struct field text_fields[] = {
    {.rows = transformer_fields, .at = offsetof(struct text_options, common.transformer)},
    {.rows = tie_fields, .at = offsetof(struct text_options, common)},
    {.rows = dropout_fields, .at = offsetof(struct text_options, common.transformer)},
    {.rows = smoothing_fields, .at = offsetof(struct text_options, common)},
    {.rows = text_own_fields, .at = offsetof(struct text_options, own)},
    {0}};

/* ---- descriptions ---- */

/* A model with two vocabularies has them under two names. */
static bool text_model_find_words(struct text_words *words, const struct text_kind *kind,
                                  const sb_description *d)
{
    const bool two = kind->source && !kind->labels;
    if (kind->source && !(words->source = sb_description_vocabulary(d, two ? "source" : "text")))
        return false;
    if (!kind->labels)
        return (words->target = sb_description_vocabulary(d, two ? "target" : "text")) != NULL;
    while (sb_description_label(d, words->count))
        words->count++;
    return true;
}

void *text_model_read(size_t size, const struct text_kind *kind, sb_parameters *weights,
                      struct text_options o, const sb_description *d)
{
    struct text_words words = {.count = 0};
    if (!text_model_find_words(&words, kind, d))
        return NULL;
    o.common.transformer.ranks = sb_description_ranks(d);
    const char **labels = memory_new((size_t)(words.count + 1) * sizeof *labels);
    for (int64_t i = 0; labels && i < words.count; i++)
        labels[i] = sb_description_label(d, i);
    words.labels = kind->labels ? labels : NULL;
    void *model = !labels ? sb_fail("%s: out of memory", kind->model->name)
                  : fields_take(text_fields, &o, kind->model, d)
                      ? text_model_new(size, kind, weights, &words, &o)
                      : NULL;
    memory_free(labels);
    return model;
}

bool text_model_describe(const void *self, sb_description *d)
{
    const struct text_model *m = self;
    const bool two = m->source && m->target;
    bool ok = fields_describe(text_fields, &m->options, m->kind->model, d);
    if (ok && m->source)
        ok = sb_description_add_vocabulary(d, two ? "source" : "text", m->source);
    if (ok && m->target)
        ok = sb_description_add_vocabulary(d, two ? "target" : "text", m->target);
    for (int64_t i = 0; ok && m->labels && i < sb_labels_count(m->labels); i++)
        ok = sb_description_add_label(d, sb_labels_text(m->labels, i));
    return ok;
}

/* ---- decoding ---- */

sb_tensor *text_model_encode(const void *self, sb_tensor *ids, sb_tensor *lengths)
{
    const struct text_model *m = self;
    return sb_encoder_forward(m->encoder, ids, lengths, NULL);
}

sb_tensor *text_model_output(const void *self, sb_tensor *y)
{
    const struct text_model *m = self;
    return sb_output_head_logits(&m->output, y);
}

bool text_model_generator(const void *self, struct generator *g)
{
    const struct text_model *m = self;
    const sb_transformer_options *o = &m->options.common.transformer;
    *g = (struct generator){.model = m,
                            .vocabulary = m->source ? m->source : m->target,
                            .outputs = m->target,
                            .decoder = m->decoder,
                            .positions = o->positions == SB_POSITIONS_LEARNED ? o->longest : 0,
                            .window = m->options.own.context,
                            .bare = m->options.own.running_text,
                            .encode = m->encoder ? text_model_encode : NULL,
                            .output = text_model_output};
    return true;
}
