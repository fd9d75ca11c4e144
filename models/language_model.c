#include "models/language_model.h"
#include "autograd/tape.h"
#include "models/decoding/generator.h"
#include "models/example_texts.h"
#include "models/language_kind.h"
#include "models/transformer_settings.h"
#include "nn/flat.h"
#include "nn/output_head.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

struct sb_language_model {
    sb_language_model_options options;
    sb_parameters *weights;
    sb_vocabulary *vocabulary;
    sb_decoder *decoder;
    sb_output_head output;
};

static bool language_model_build(sb_language_model *m)
{
    const sb_transformer_options *o = &m->options.transformer;
    int64_t V = sb_vocabulary_size(m->vocabulary);
    m->decoder = sb_decoder_new(m->weights, "decoder", V, o, false, NULL);
    if (!m->decoder)
        return false;
    sb_tensor *tied = m->options.tie_embeddings ? sb_decoder_table(m->decoder) : NULL;
    if (!sb_output_head_init(&m->output, m->weights, "output", o->width, V,
                             sb_transformer_output_bias(o), tied))
        return false;
    m->output.padded = tied && o->padded;
    m->output.padding_id = o->padding_id;
    return true;
}

static bool language_model_check(const sb_language_model_options *o)
{
    const sb_transformer_options *t = &o->transformer;
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return sb_fail("language_model: label_smoothing is %g; it must be in [0, 1)",
                       o->label_smoothing);
    if (o->context < 0 || o->context > 1 << 24)
        return sb_fail("language_model: context is %lld, not in 0..%d", (long long)o->context,
                       1 << 24);
    return t->positions != SB_POSITIONS_LEARNED || o->context <= t->longest ||
           sb_fail("language_model: context is %lld, but only %lld positions are learned; raise "
                   "the longest position, or take another positional encoding",
                   (long long)o->context, (long long)t->longest);
}

sb_language_model *sb_language_model_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                         const sb_language_model_options *options)
{
    if (!weights || !vocabulary)
        return fail_null("language_model", weights ? "vocabulary" : "weights");
    sb_language_model_options o = options ? *options : (sb_language_model_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer))
        return NULL;
    if (!language_model_check(&o))
        return NULL;
    sb_language_model *m = memory_new(sizeof *m);
    if (!m)
        return sb_fail("language_model: out of memory");
    *m = (sb_language_model){.options = o, .weights = weights};
    m->vocabulary = sb_vocabulary_retain(vocabulary);
    const struct parameters_mark mark = parameters_mark(weights);
    if (language_model_build(m))
        return m;
    sb_language_model_free(m);
    parameters_return(weights, &mark);
    return NULL;
}

sb_language_model *sb_language_model_new(sb_parameters *weights, const sb_data *data,
                                         const sb_language_model_options *options)
{
    if (!data)
        return fail_null("language_model", "data");
    return sb_language_model_for(weights, sb_data_target(data), options);
}

void sb_language_model_free(sb_language_model *model)
{
    if (!model)
        return;
    sb_decoder_free(model->decoder);
    sb_vocabulary_release(model->vocabulary);
    memory_free(model);
}

const sb_language_model_options *sb_language_model_options_of(const sb_language_model *model)
{
    return model ? &model->options : NULL;
}

sb_vocabulary *sb_language_model_vocabulary(const sb_language_model *model)
{
    return model ? model->vocabulary : NULL;
}

sb_parameters *sb_language_model_parameters(const sb_language_model *model)
{
    return model ? model->weights : NULL;
}

/* The decoder's input: "begin", then the ids but the last. Negative ids become padding. */
static sb_tensor *language_model_input(sb_tensor *ids)
{
    if (!ids)
        return fail_null("language_model", "ids");
    if (sb_tensor_rank(ids) != 2 || sb_tensor_dtype(ids) != SB_I32)
        return sb_fail("language_model: ids are %s of rank %d; they must be i32 (batch, length)",
                       sb_dtype_name(sb_tensor_dtype(ids)), sb_tensor_rank(ids));
    int64_t B = sb_tensor_dim(ids, 0), L = sb_tensor_dim(ids, 1);
    const sb_device *device = sb_tensor_device(ids);
    sb_tensor *input = sb_tensor_to(ids, sb_device_cpu());
    int32_t *to = input ? sb_tensor_data(input) : NULL;
    for (int64_t i = B * L - 1; to && i >= 0; i--)
        to[i] = i % L == 0 ? SB_SYMBOL_BEGIN : to[i - 1] < 0 ? SB_SYMBOL_PADDING : to[i - 1];
    input = tensor_moved(input, device);
    return input ? sb_tape_own(input) : NULL;
}

/* The decoder's output (B, L, C). */
static sb_tensor *language_model_decode(const sb_language_model *m, sb_tensor *input,
                                        const sb_decoder_weights *weights)
{
    return input ? sb_decoder_forward(m->decoder, input, NULL, NULL, weights) : NULL;
}

static sb_tensor *language_model_loss_of(const sb_language_model *m, sb_tensor *y, sb_tensor *ids,
                                         sb_loss loss)
{
    if (!y)
        return NULL;
    const sb_cross_entropy_options options = {
        .label_smoothing = loss == SB_LOSS_COST ? 0 : m->options.label_smoothing,
        .reduction = loss == SB_LOSS_MEAN ? SB_REDUCE_MEAN : SB_REDUCE_SUM};
    return sb_output_head_loss(&m->output, y, ids, &options);
}

sb_tensor *sb_language_model_loss(const sb_language_model *model, sb_tensor *ids)
{
    if (!model)
        return fail_null("language_model", "model");
    return language_model_loss_of(
        model, language_model_decode(model, language_model_input(ids), NULL), ids, SB_LOSS_MEAN);
}

sb_tensor *sb_language_model_logits(const sb_language_model *model, sb_tensor *ids)
{
    if (!model)
        return fail_null("language_model", "model");
    sb_tensor *y = language_model_decode(model, language_model_input(ids), NULL);
    return y ? sb_output_head_logits(&model->output, y) : NULL;
}

sb_tensor *sb_language_model_window_loss(const sb_language_model *model, sb_tensor *input,
                                         sb_tensor *targets)
{
    if (!model || !input || !targets)
        return fail_null("language_model", !model ? "model" : input ? "targets" : "input");
    return language_model_loss_of(model, language_model_decode(model, input, NULL), targets,
                                  SB_LOSS_MEAN);
}

sb_tensor *sb_language_model_window_logits(const sb_language_model *model, sb_tensor *input)
{
    if (!model || !input)
        return fail_null("language_model", model ? "input" : "model");
    sb_tensor *y = language_model_decode(model, input, NULL);
    return y ? sb_output_head_logits(&model->output, y) : NULL;
}

/* ---- the kind ---- */

void language_add_settings(struct setting_table *t, struct language_settings *s)
{
    t->group = SETTING_OF_MODEL;
    t->kinds = SETTING_FOR_LANGUAGE;
    setting_add_count(t, "context", &s->context, 0, 1 << 24,
                      "symbols that a language model reads at a time (0: all)");
    setting_add_flag(t, "running-text", &s->running_text,
                     "treat a prompt as text from the middle of a document: add no begin symbol");
    t->kinds = SETTING_FOR_ALL;
}

/* Its settings, bound to options. */
static struct setting_table language_settings(sb_language_model_options *o,
                                              struct language_settings *own)
{
    struct setting_table t = {.count = 0};
    setting_add_transformer(&t, &o->transformer, SETTING_FOR_LANGUAGE);
    setting_add_ties(&t, &o->tie_embeddings);
    setting_add_dropout(&t, &o->transformer);
    setting_add_smoothing(&t, &o->label_smoothing);
    language_add_settings(&t, own);
    return t;
}

static void *language_build(sb_parameters *weights, const sb_description *d)
{
    sb_language_model_options o = {.transformer = {.ranks = sb_description_ranks(d)}};
    struct language_settings own = {0};
    const struct setting_table table = language_settings(&o, &own);
    sb_vocabulary *vocabulary = sb_description_vocabulary(d, "text");
    if (!vocabulary || !settings_take(&table, d))
        return NULL;
    o.context = own.context;
    o.running_text = own.running_text;
    return sb_language_model_for(weights, vocabulary, &o);
}

static bool language_describe(const void *self, sb_description *d)
{
    const sb_language_model *m = self;
    sb_language_model_options o = m->options; /* a copy, as settings can be written to */
    struct language_settings own = {o.context, o.running_text};
    const struct setting_table table = language_settings(&o, &own);
    return settings_describe(&table, d) && sb_description_add_vocabulary(d, "text", m->vocabulary);
}

static void language_free(void *self)
{
    sb_language_model_free(self);
}

/* Of windows, or of pairs, whose targets are texts. */
static sb_tensor *language_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    sb_tensor *ids = sb_batch_get(batch, "target_out");
    sb_tensor *y = ids ? language_model_decode(self, sb_batch_get(batch, "target_in"), NULL) : NULL;
    return language_model_loss_of(self, y, ids, loss);
}

static bool language_attentions(const void *self, const sb_batch *batch, sb_attentions *a)
{
    const sb_language_model *m = self;
    const int layers = sb_decoder_layers(m->decoder);
    sb_tensor *ids = sb_batch_get(batch, "target_out"),
              *lengths = sb_batch_get(batch, "target_lengths");
    *a = (sb_attentions){.maps = layers, .map = memory_new((size_t)layers * sizeof *a->map)};
    sb_tensor **self_weights = memory_new((size_t)layers * sizeof *self_weights);
    if (a->map && self_weights && ids && lengths) {
        const sb_decoder_weights weights = {.self = self_weights};
        a->loss = language_model_loss_of(
            m, language_model_decode(m, sb_batch_get(batch, "target_in"), &weights), ids,
            SB_LOSS_COST);
        a->loss = a->loss ? sb_scale(a->loss, 1 / (double)batch->targets) : NULL;
    }
    for (int i = 0; a->loss && i < layers; i++)
        a->map[i] = (sb_attention_map){self_weights[i], lengths, lengths, true};
    if (!a->map || !self_weights)
        sb_fail("language_model: out of memory");
    memory_free(self_weights);
    if (!a->loss)
        memory_free(a->map);
    return a->loss != NULL;
}

static bool language_example(const void *self, const char *text, const char *target, sb_example *e)
{
    const sb_language_model *m = self;
    (void)target;
    return example_of_decoder(e, m->vocabulary, &m->options.transformer, text,
                              m->options.running_text, m->options.context);
}

static sb_tensor *language_output(const void *model, sb_tensor *y)
{
    const sb_language_model *m = model;
    return sb_output_head_logits(&m->output, y);
}

static bool language_generator(const void *self, struct generator *g)
{
    const sb_language_model *m = self;
    const sb_transformer_options *o = &m->options.transformer;
    *g = (struct generator){.model = m,
                            .vocabulary = m->vocabulary,
                            .symbols = sb_vocabulary_size(m->vocabulary),
                            .units = sb_vocabulary_units(m->vocabulary),
                            .decoder = m->decoder,
                            .positions = o->positions == SB_POSITIONS_LEARNED ? o->longest : 0,
                            .window = m->options.context,
                            .bare = m->options.running_text,
                            .output = language_output};
    return true;
}

const sb_model_kind language_model_kind = {.name = "language_model",
                                           .build = language_build,
                                           .describe = language_describe,
                                           .free = language_free,
                                           .loss = language_loss,
                                           .attentions = language_attentions,
                                           .example = language_example,
                                           .generator = language_generator,
                                           .splits = "batch heads sequence"};

sb_model sb_language_model_as_model(sb_language_model *model)
{
    return (sb_model){&language_model_kind, model, sb_language_model_parameters(model)};
}

/* ---- decoding ---- */

bool sb_continue_texts(const sb_language_model *model, const char *const *prompts, int64_t n,
                       const sb_decoding_options *options, sb_decoded outputs[])
{
    if (!model)
        return fail_null("continue", "model");
    const sb_model subject = sb_language_model_as_model((sb_language_model *)(uintptr_t)model);
    return sb_model_decode(&subject, prompts, n, options, outputs);
}

char *sb_continue(const sb_language_model *model, const char *prompt,
                  const sb_decoding_options *options)
{
    sb_decoded decoded;
    char *text = NULL;
    if (!sb_continue_texts(model, &prompt, 1, options, &decoded))
        return NULL;
    generator_texts(model->vocabulary, 1, &decoded, &text);
    sb_decoded_free(1, &decoded);
    return text;
}
