#include "models/language_model.h"
#include "autograd/tape.h"
#include "models/decoding/generator.h"
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

static bool build(sb_language_model *m)
{
    const sb_transformer_options *o = &m->options.transformer;
    int64_t V = sb_vocabulary_size(m->vocabulary);
    m->decoder = sb_decoder_new(m->weights, "decoder", V, o, false, NULL);
    if (!m->decoder)
        return false;
    sb_tensor *tied = m->options.tie_embeddings ? sb_decoder_table(m->decoder) : NULL;
    return sb_output_head_init(&m->output, m->weights, "output", o->width, V, tied);
}

sb_language_model *sb_language_model_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                         const sb_language_model_options *options)
{
    if (!weights || !vocabulary)
        return fail_null("language_model", weights ? "vocabulary" : "weights");
    sb_language_model_options o = options ? *options : (sb_language_model_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer))
        return NULL;
    if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
        return sb_fail("language_model: label_smoothing is %g, not in [0, 1)", o.label_smoothing);
    sb_language_model *m = memory_new(sizeof *m);
    if (!m)
        return sb_fail("language_model: out of memory");
    *m = (sb_language_model){.options = o, .weights = weights};
    m->vocabulary = sb_vocabulary_retain(vocabulary);
    const struct parameters_mark mark = parameters_mark(weights);
    if (build(m))
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

/* What comes before each symbol: "begin" before the first. What stands behind a text is not looked
   at, and becomes padding. */
static sb_tensor *before(sb_tensor *ids)
{
    if (!ids)
        return fail_null("language_model", "ids");
    if (sb_tensor_rank(ids) != 2 || sb_tensor_dtype(ids) != SB_I32)
        return sb_fail("language_model: ids are %s with %d axes, not i32 with 2 (batch, length)",
                       sb_dtype_name(sb_tensor_dtype(ids)), sb_tensor_rank(ids));
    int64_t B = sb_tensor_dim(ids, 0), L = sb_tensor_dim(ids, 1);
    const sb_device *device = sb_tensor_device(ids);
    sb_tensor *input = sb_tensor_to(ids, sb_device_cpu());
    int32_t *to = input ? sb_tensor_data(input) : NULL;
    for (int64_t i = B * L - 1; to && i >= 0; i--)
        to[i] = i % L == 0 ? SB_BEGIN : to[i - 1] < 0 ? SB_PADDING : to[i - 1];
    input = tensor_moved(input, device);
    return input ? sb_tape_own(input) : NULL;
}

/* What the decoder makes of the texts, (B, L, C). */
static sb_tensor *decode(const sb_language_model *m, sb_tensor *ids)
{
    if (!m)
        return fail_null("language_model", "model");
    sb_tensor *input = before(ids);
    return input ? sb_decoder_forward(m->decoder, input, NULL, NULL, NULL) : NULL;
}

sb_tensor *sb_language_model_loss(const sb_language_model *model, sb_tensor *ids)
{
    sb_tensor *y = decode(model, ids);
    if (!y)
        return NULL;
    sb_cross_entropy_options options = {.label_smoothing = model->options.label_smoothing};
    return sb_output_head_loss(&model->output, y, ids, &options);
}

sb_tensor *sb_language_model_logits(const sb_language_model *model, sb_tensor *ids)
{
    sb_tensor *y = decode(model, ids);
    return y ? sb_output_head_logits(&model->output, y) : NULL;
}

static sb_tensor *output(const void *model, sb_tensor *y)
{
    const sb_language_model *m = model;
    return sb_output_head_logits(&m->output, y);
}

bool sb_continue_texts(const sb_language_model *model, const char *const *prompts, int64_t n,
                       const sb_decoding_options *options, sb_decoded outputs[])
{
    if (!model)
        return fail_null("continue", "model");
    const sb_transformer_options *o = &model->options.transformer;
    struct generator generator = {
        .model = model,
        .vocabulary = model->vocabulary,
        .symbols = sb_vocabulary_size(model->vocabulary),
        .decoder = model->decoder,
        .positions = o->positions == SB_POSITIONS_LEARNED ? o->longest : 0,
        .output = output,
    };
    return generator_decode(&generator, prompts, n, options, outputs);
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
