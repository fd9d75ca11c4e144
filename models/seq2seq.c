#include "models/seq2seq.h"
#include "models/decoding/generator.h"
#include "models/example_texts.h"
#include "models/seq2seq_kind.h"
#include "models/transformer_settings.h"
#include "models/translation.h"
#include "models/translation_score.h"
#include "nn/flat.h"
#include "nn/output_head.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_seq2seq {
    sb_seq2seq_options options;
    sb_parameters *weights;
    sb_vocabulary *source, *target;
    sb_encoder *encoder;
    sb_decoder *decoder;
    sb_output_head output;
};

static bool seq2seq_check(const sb_seq2seq_options *o, const sb_vocabulary *source,
                          const sb_vocabulary *target)
{
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return sb_fail("seq2seq: label_smoothing is %g; it must be in [0, 1)", o->label_smoothing);
    if (o->share_embeddings && source != target)
        return sb_fail("seq2seq: shared embeddings need one vocabulary for source and target");
    return true;
}

static bool seq2seq_add_parts(sb_seq2seq *m)
{
    const sb_transformer_options *o = &m->options.transformer;
    int64_t Vs = sb_vocabulary_size(m->source), Vt = sb_vocabulary_size(m->target);
    m->encoder = sb_encoder_new(m->weights, "encoder", Vs, o);
    if (!m->encoder)
        return false;
    sb_tensor *shared = m->options.share_embeddings ? sb_encoder_table(m->encoder) : NULL;
    m->decoder = sb_decoder_new(m->weights, "decoder", Vt, o, true, shared);
    if (!m->decoder)
        return false;
    sb_tensor *tied = m->options.tie_embeddings ? sb_decoder_table(m->decoder) : NULL;
    if (!sb_output_head_init(&m->output, m->weights, "output", o->width, Vt,
                             sb_transformer_output_bias(o), tied))
        return false;
    m->output.padded = tied && o->padded;
    m->output.padding_id = o->padding_id;
    return true;
}

sb_seq2seq *sb_seq2seq_for(sb_parameters *weights, sb_vocabulary *source, sb_vocabulary *target,
                           const sb_seq2seq_options *options)
{
    if (!weights || !source || !target)
        return fail_null("seq2seq", !weights ? "weights" : !source ? "source" : "target");
    sb_seq2seq_options o = options ? *options : (sb_seq2seq_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer) ||
        !seq2seq_check(&o, source, target))
        return NULL;
    sb_seq2seq *m = memory_new(sizeof *m);
    if (!m)
        return sb_fail("seq2seq: out of memory");
    *m = (sb_seq2seq){.options = o, .weights = weights};
    m->source = sb_vocabulary_retain(source);
    m->target = sb_vocabulary_retain(target);
    const struct parameters_mark mark = parameters_mark(weights);
    if (seq2seq_add_parts(m))
        return m;
    sb_seq2seq_free(m);
    parameters_return(weights, &mark);
    return NULL;
}

sb_seq2seq *sb_seq2seq_new(sb_parameters *weights, const sb_data *data,
                           const sb_seq2seq_options *options)
{
    if (!data)
        return fail_null("seq2seq", "data");
    return sb_seq2seq_for(weights, sb_data_source(data), sb_data_target(data), options);
}

void sb_seq2seq_free(sb_seq2seq *model)
{
    if (!model)
        return;
    sb_encoder_free(model->encoder);
    sb_decoder_free(model->decoder);
    sb_vocabulary_release(model->source);
    sb_vocabulary_release(model->target);
    memory_free(model);
}

const sb_seq2seq_options *sb_seq2seq_options_of(const sb_seq2seq *model)
{
    return model ? &model->options : NULL;
}

sb_vocabulary *sb_seq2seq_source(const sb_seq2seq *model)
{
    return model ? model->source : NULL;
}

sb_vocabulary *sb_seq2seq_target(const sb_seq2seq *model)
{
    return model ? model->target : NULL;
}

sb_parameters *sb_seq2seq_parameters(const sb_seq2seq *model)
{
    return model ? model->weights : NULL;
}

sb_decoder *sb_seq2seq_decoder(const sb_seq2seq *model)
{
    return model ? model->decoder : NULL;
}

sb_tensor *sb_seq2seq_encode(const sb_seq2seq *model, sb_tensor *ids, sb_tensor *lengths)
{
    if (!model)
        return fail_null("seq2seq", "model");
    return sb_encoder_forward(model->encoder, ids, lengths, NULL);
}

sb_tensor *sb_seq2seq_output(const sb_seq2seq *model, sb_tensor *y)
{
    if (!model)
        return fail_null("seq2seq", "model");
    return sb_output_head_logits(&model->output, y);
}

/* The decoder's output (B, Lt, C). */
static sb_tensor *seq2seq_decode(const sb_seq2seq *m, const sb_batch *batch,
                                 const sb_seq2seq_weights *weights)
{
    if (!m || !batch)
        return fail_null("seq2seq", m ? "batch" : "model");
    sb_tensor *source = sb_batch_get(batch, "source"),
              *lengths = sb_batch_get(batch, "source_lengths"),
              *target_in = sb_batch_get(batch, "target_in");
    if (!source || !lengths || !target_in)
        return NULL;
    sb_tensor *memory =
        sb_encoder_forward(m->encoder, source, lengths, weights ? weights->encoder : NULL);
    if (!memory)
        return NULL;
    return sb_decoder_forward(m->decoder, target_in, memory, lengths,
                              weights ? &weights->decoder : NULL);
}

static sb_tensor *seq2seq_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    const sb_seq2seq *m = self;
    sb_tensor *y = seq2seq_decode(m, batch, NULL),
              *target = y ? sb_batch_get(batch, "target_out") : NULL;
    if (!target)
        return NULL;
    const sb_cross_entropy_options options = {
        .label_smoothing = loss == SB_LOSS_COST ? 0 : m->options.label_smoothing,
        .reduction = loss == SB_LOSS_MEAN ? SB_REDUCE_MEAN : SB_REDUCE_SUM};
    return sb_output_head_loss(&m->output, y, target, &options);
}

sb_tensor *sb_seq2seq_loss(const sb_seq2seq *model, const sb_batch *batch)
{
    return seq2seq_loss(model, batch, SB_LOSS_MEAN);
}

sb_tensor *sb_seq2seq_loss_sum(const sb_seq2seq *model, const sb_batch *batch)
{
    return seq2seq_loss(model, batch, SB_LOSS_SUM);
}

sb_tensor *sb_seq2seq_cost(const sb_seq2seq *model, const sb_batch *batch)
{
    return seq2seq_loss(model, batch, SB_LOSS_COST);
}

sb_tensor *sb_seq2seq_logits(const sb_seq2seq *model, const sb_batch *batch,
                             const sb_seq2seq_weights *weights)
{
    sb_tensor *y = seq2seq_decode(model, batch, weights);
    return y ? sb_seq2seq_output(model, y) : NULL;
}

/* ---- the kind ---- */

const sb_seq2seq_options seq2seq_defaults = {.transformer = {.width = 128,
                                                             .heads = 4,
                                                             .encoder_layers = 3,
                                                             .decoder_layers = 3,
                                                             .dropout = 0.1,
                                                             .activation = SB_ACTIVATION_RELU}};

void seq2seq_add_sharing(struct setting_table *t, sb_seq2seq_options *o)
{
    t->group = SETTING_OF_MODEL;
    t->kinds = SETTING_FOR_SEQ2SEQ;
    setting_add_flag(t, "share-embeddings", &o->share_embeddings,
                     "one embedding table for source and target (with --joint-vocabulary)");
    t->kinds = SETTING_FOR_ALL;
}

/* Its settings, bound to options. */
static struct setting_table seq2seq_settings(sb_seq2seq_options *o)
{
    struct setting_table t = {.count = 0};
    setting_add_transformer(&t, &o->transformer, SETTING_FOR_SEQ2SEQ);
    setting_add_ties(&t, &o->tie_embeddings);
    seq2seq_add_sharing(&t, o);
    setting_add_dropout(&t, &o->transformer);
    setting_add_smoothing(&t, &o->label_smoothing);
    return t;
}

static void *seq2seq_build(sb_parameters *weights, const sb_description *d)
{
    sb_seq2seq_options o = seq2seq_defaults;
    sb_vocabulary *source = sb_description_vocabulary(d, "source"),
                  *target = source ? sb_description_vocabulary(d, "target") : NULL;
    const struct setting_table table = seq2seq_settings(&o);
    o.transformer.ranks = sb_description_ranks(d);
    return target && settings_take(&table, d) ? sb_seq2seq_for(weights, source, target, &o) : NULL;
}

static bool seq2seq_describe(const void *self, sb_description *d)
{
    const sb_seq2seq *m = self;
    sb_seq2seq_options o = m->options; /* a copy, as settings can be written to */
    const struct setting_table table = seq2seq_settings(&o);
    return settings_describe(&table, d) && sb_description_add_vocabulary(d, "source", m->source) &&
           sb_description_add_vocabulary(d, "target", m->target);
}

static void seq2seq_release(void *self)
{
    sb_seq2seq_free(self);
}

/* The maps of encoder, self- and cross-attention, in this order, with their lengths. */
static bool seq2seq_map_attentions(const sb_seq2seq *m, const sb_batch *batch,
                                   sb_tensor *const weights[], sb_attention_map map[])
{
    const int E = m->options.transformer.encoder_layers, D = m->options.transformer.decoder_layers;
    sb_tensor *source = sb_batch_get(batch, "source_lengths"),
              *target = sb_batch_get(batch, "target_lengths");
    for (int i = 0; i < E; i++)
        map[i] = (sb_attention_map){weights[i], source, source, false};
    for (int i = E; i < E + D; i++)
        map[i] = (sb_attention_map){weights[i], target, target, true};
    for (int i = E + D; i < E + 2 * D; i++)
        map[i] = (sb_attention_map){weights[i], target, source, false};
    return source && target;
}

static bool seq2seq_attentions(const void *self, const sb_batch *batch, sb_attentions *a)
{
    const sb_seq2seq *m = self;
    const int E = m->options.transformer.encoder_layers, D = m->options.transformer.decoder_layers;
    *a = (sb_attentions){.maps = E + 2 * D};
    a->map = memory_new((size_t)a->maps * sizeof *a->map);
    sb_tensor **weights = memory_new((size_t)a->maps * sizeof *weights);
    bool ok = (a->map && weights) || sb_fail("seq2seq: out of memory");
    if (ok) {
        const sb_seq2seq_weights into = {weights, {weights + E, weights + E + D}};
        sb_tensor *logits = sb_seq2seq_logits(m, batch, &into);
        sb_tensor *target = logits ? sb_batch_get(batch, "target_out") : NULL;
        a->loss = target ? sb_cross_entropy(logits, target, NULL) : NULL;
        ok = a->loss && seq2seq_map_attentions(m, batch, weights, a->map);
    }
    memory_free(weights);
    if (!ok)
        memory_free(a->map);
    return ok;
}

static bool seq2seq_example(const void *self, const char *text, const char *target, sb_example *e)
{
    const sb_seq2seq *m = self;
    return example_of_pair(e, m->source, m->target, &m->options.transformer, text,
                           target ? memory_text(target) : sb_translate(m, text, NULL));
}

static bool seq2seq_score(const void *self, const void *held, sb_communicator *ranks,
                          sb_evaluation *evaluation)
{
    return translation_evaluate(ranks, self, held, evaluation);
}

static sb_tensor *seq2seq_encode(const void *self, sb_tensor *ids, sb_tensor *lengths)
{
    return sb_seq2seq_encode(self, ids, lengths);
}

static sb_tensor *seq2seq_output(const void *self, sb_tensor *y)
{
    return sb_seq2seq_output(self, y);
}

static bool seq2seq_generator(const void *self, struct generator *g)
{
    const sb_seq2seq *m = self;
    const sb_transformer_options *o = &m->options.transformer;
    *g = (struct generator){.model = m,
                            .vocabulary = m->source,
                            .symbols = sb_vocabulary_size(m->target),
                            .units = sb_vocabulary_units(m->target),
                            .decoder = m->decoder,
                            .positions = o->positions == SB_POSITIONS_LEARNED ? o->longest : 0,
                            .encode = seq2seq_encode,
                            .output = seq2seq_output};
    return true;
}

const sb_model_kind seq2seq_kind = {.name = "seq2seq",
                                    .build = seq2seq_build,
                                    .describe = seq2seq_describe,
                                    .free = seq2seq_release,
                                    .loss = seq2seq_loss,
                                    .score = seq2seq_score,
                                    .attentions = seq2seq_attentions,
                                    .example = seq2seq_example,
                                    .generator = seq2seq_generator,
                                    .splits = "batch heads sequence"};

sb_model sb_seq2seq_as_model(sb_seq2seq *model)
{
    return (sb_model){&seq2seq_kind, model, sb_seq2seq_parameters(model)};
}
