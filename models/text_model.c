#include "models/text_model.h"
#include "models/data/data_source.h"
#include "models/data/windows.h"
#include "models/decoding/generator.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/text/labels_parts.h"
#include "nn/flat.h"
#include "tensor/error.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

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
    const sb_transformer_options *o = &m->options.transformer;
    const int64_t Vs = sb_vocabulary_size(m->source), Vt = sb_vocabulary_size(m->target);
    if (m->source && !(m->encoder = sb_encoder_new(m->weights, "encoder", Vs, o)))
        return false;
    sb_tensor *shared = m->options.share_embeddings ? sb_encoder_table(m->encoder) : NULL;
    if (m->kind->target &&
        !(m->decoder = sb_decoder_new(m->weights, "decoder", Vt, o, m->encoder != NULL, shared)))
        return false;
    const bool biased = sb_transformer_output_bias(o);
    if (m->options.hidden &&
        !sb_linear_layer_init(&m->hidden, m->weights, "hidden", o->width, o->width, biased))
        return false;
    sb_tensor *tied = m->options.tie_embeddings ? sb_decoder_table(m->decoder) : NULL;
    if (!sb_output_head_init(&m->output, m->weights, "output", o->width,
                             m->labels ? sb_labels_count(m->labels) : Vt, biased, tied))
        return false;
    m->output.scale = o->output_scale;
    m->output.padded = tied && o->padded;
    m->output.padding_id = o->padding_id;
    return true;
}

void *text_model_new(const struct text_kind *kind, sb_parameters *weights,
                     const struct text_words *words, const sb_text_model_options *options)
{
    sb_text_model_options o = options ? *options : (sb_text_model_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer) ||
        !text_options_check(&o, kind->model))
        return NULL;
    if (o.share_embeddings && words->source != words->target)
        return sb_fail("%s: shared embeddings need one vocabulary for source and target",
                       kind->model->name);
    struct text_model *m = memory_new(sizeof *m);
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
    if (m->options.pooling == SB_POOLING_FIRST)
        return sb_reshape(sb_slice(y, 1, 0, 1), SB_SHAPE(B, C));
    sb_tensor *weights = sb_batch_get(batch, "pooling");
    weights = weights ? sb_cast(weights, sb_tensor_dtype(y)) : NULL;
    weights = weights ? sb_reshape(weights, SB_SHAPE(B, 1, L)) : NULL;
    return weights ? sb_reshape(sb_matmul(weights, y), SB_SHAPE(B, C)) : NULL;
}

static sb_tensor *text_model_hidden(const struct text_model *m, sb_tensor *y)
{
    return y && m->options.hidden ? sb_linear_layer_forward(&m->hidden, y, m->options.hidden) : y;
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
        .label_smoothing = loss == SB_LOSS_COST ? 0 : m->options.label_smoothing,
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
    words->labels = description_labels(d, &words->count);
    return true;
}

void *text_model_read(const struct text_kind *kind, sb_parameters *weights, sb_text_model_options o,
                      const sb_description *d)
{
    struct text_words words = {.count = 0};
    if (!text_model_find_words(&words, kind, d) || !fields_take(text_fields, &o, kind->model, d))
        return NULL;
    o.transformer.ranks = sb_description_ranks(d);
    return text_model_new(kind, weights, &words, &o);
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
    const sb_transformer_options *o = &m->options.transformer;
    *g = (struct generator){.model = m,
                            .vocabulary = m->source ? m->source : m->target,
                            .outputs = m->target,
                            .decoder = m->decoder,
                            .positions =
                                o->positions == SB_POSITIONS_LEARNED ? o->positions_longest : 0,
                            .window = m->options.context,
                            .bare = m->options.running_text,
                            .encode = m->encoder ? text_model_encode : NULL,
                            .output = text_model_output};
    return true;
}

/* ---- examples ---- */

void example_free(sb_example *e)
{
    sb_batch_free(e->batch);
    memory_free(e->ids);
    sb_free(e->target);
    *e = (sb_example){0};
}

static bool example_is_complete(sb_example *e)
{
    if (!e->batch)
        example_free(e);
    return e->batch != NULL;
}

/* One block: the source; the target and end; begin and the target. */
static bool example_encode_pair(sb_example *e, sb_vocabulary *source, sb_vocabulary *target,
                                const char *text, sb_encoded_pair *pair)
{
    int64_t n = 0, m = 0;
    int32_t *read = sb_vocabulary_encode(source, text, &n, NULL);
    int32_t *written = read ? sb_vocabulary_encode(target, e->target, &m, NULL) : NULL;
    e->ids = written ? memory_new((size_t)(n + 2 * m + 2) * sizeof *e->ids) : NULL;
    if (written && !e->ids)
        sb_fail("out of memory for %lld symbols", (long long)(n + m));
    if (e->ids) {
        memcpy(e->ids, read, (size_t)n * sizeof *e->ids);
        memcpy(e->ids + n, written, (size_t)m * sizeof *e->ids);
        memcpy(e->ids + n + m + 2, written, (size_t)m * sizeof *e->ids);
        e->ids[n + m] = sb_vocabulary_special(target, SB_SYMBOL_END);
        e->ids[n + m + 1] = sb_vocabulary_special(target, SB_SYMBOL_BEGIN);
        *pair = (sb_encoded_pair){e->ids, e->ids + n, n, m, target};
    }
    sb_free(written);
    sb_free(read);
    return e->ids != NULL;
}

bool text_example_of_pair(sb_example *e, const struct text_model *m, const char *text,
                          char *written)
{
    const sb_transformer_options *o = &m->options.transformer;
    sb_encoded_pair pair;
    *e = (sb_example){.target = written, .heads = o->heads};
    if (written && example_encode_pair(e, m->source, m->target, text, &pair)) {
        const int E = o->encoder_layers, D = o->decoder_layers;
        const sb_example_axis source = {m->source, pair.source, pair.source_length},
                              output = {m->target, pair.target, pair.target_length + 1},
                              decoder_input = {m->target, output.ids + output.length,
                                               output.length};
        e->batch = sb_batch_new(1, &pair);
        e->choices = sb_vocabulary_size(m->target);
        e->attentions = 3;
        e->attention[0] = (sb_example_attention){
            "cross", "output symbols", "the source symbols that they attend to",
            output,  source,           E + D,
            D,       .causal = false,  .self = false};
        e->attention[1] = (sb_example_attention){
            "encoder", "source symbols", "the source symbols that they attend to",
            source,    source,           0,
            E,         .causal = false,  .self = true};
        e->attention[2] = (sb_example_attention){
            "decoder", "output symbols", "the earlier symbols that they attend to",
            output,    decoder_input,    E,
            D,         .causal = true,   .self = true};
    }
    return example_is_complete(e);
}

/* Begin, unless it is bare; the symbols of the text; end, which is not on the axis. */
static bool example_encode_text(sb_example *e, sb_vocabulary *vocabulary, const char *text,
                                bool bare, sb_example_axis *axis)
{
    int64_t n;
    int32_t *ids = sb_vocabulary_encode(vocabulary, text, &n, NULL);
    if (ids && n > 0 && (e->ids = memory_new((size_t)(n + 2) * sizeof *e->ids))) {
        e->ids[0] = sb_vocabulary_special(vocabulary, SB_SYMBOL_BEGIN);
        memcpy(e->ids + !bare, ids, (size_t)n * sizeof *ids);
        *axis = (sb_example_axis){vocabulary, e->ids, n + !bare};
        e->ids[axis->length] = sb_vocabulary_special(vocabulary, SB_SYMBOL_END);
    } else if (ids) {
        sb_fail(n > 0 ? "out of memory" : "the text is empty; give one with at least a symbol");
    }
    sb_free(ids);
    return e->ids != NULL;
}

static sb_batch *example_batch_of_decoder(const struct text_model *m, const int32_t *ids,
                                          int64_t length)
{
    const int64_t context = m->options.context;
    if (context > 0 && length > context)
        return sb_fail("the text has %lld symbols, the model's context is %lld; give a shorter one",
                       (long long)length, (long long)context);
    return sb_window_batch_new(1, &ids, &length);
}

static sb_batch *example_batch_of_encoder(const struct text_model *m, const int32_t *ids,
                                          int64_t length, int64_t label)
{
    const bool begin = sb_vocabulary_units(m->source) != SB_UNITS_IDS;
    const int32_t *const text = ids + begin; /* the batch adds begin */
    length -= begin;
    return sb_labelled_batch_new(1, &text, &length, &label, m->source);
}

bool text_example_of_text(sb_example *e, const struct text_model *m, const char *text,
                          int64_t label)
{
    const sb_transformer_options *o = &m->options.transformer;
    sb_vocabulary *vocabulary = m->decoder ? m->target : m->source;
    sb_example_axis axis;
    *e = (sb_example){.choices =
                          m->labels ? sb_labels_count(m->labels) : sb_vocabulary_size(vocabulary),
                      .heads = o->heads};
    const bool bare =
        m->decoder ? m->options.running_text : sb_vocabulary_units(vocabulary) == SB_UNITS_IDS;
    if (!example_encode_text(e, vocabulary, text, bare, &axis))
        return false;
    e->attentions = 1;
    e->attention[0] =
        (sb_example_attention){m->decoder ? "decoder" : "encoder",
                               "symbols",
                               m->decoder ? "itself and the earlier symbols that it attends to"
                                          : "the symbols that they attend to",
                               axis,
                               axis,
                               0,
                               m->decoder ? o->decoder_layers : o->encoder_layers,
                               .causal = m->decoder,
                               .self = true};
    e->batch = m->decoder ? example_batch_of_decoder(m, e->ids, axis.length)
                          : example_batch_of_encoder(m, e->ids, axis.length, label);
    return example_is_complete(e);
}
