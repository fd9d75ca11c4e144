#include "models/language_model.h"
#include "autograd/tape.h"
#include "models/decoding/generator.h"
#include "models/kinds.h"
#include "models/text_model.h"
#include "tensor/failure.h"
#include "tensor/storage.h"

struct sb_language_model {
    struct text_model text;
};

static const struct text_kind language_text = {.model = &language_model_kind,
                                               .target = "target_in",
                                               .target_lengths = "target_lengths",
                                               .expected = "target_out"};

sb_language_model *sb_language_model_for(sb_parameters *weights, sb_vocabulary *vocabulary,
                                         const sb_language_model_options *options)
{
    if (!weights || !vocabulary)
        return fail_null("language_model", weights ? "vocabulary" : "weights");
    const struct text_words words = {.target = vocabulary};
    return text_model_new(&language_text, weights, &words, options);
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
    text_model_free(model);
}

const sb_language_model_options *sb_language_model_options_of(const sb_language_model *model)
{
    return model ? &model->text.options : NULL;
}

sb_vocabulary *sb_language_model_vocabulary(const sb_language_model *model)
{
    return model ? model->text.target : NULL;
}

sb_parameters *sb_language_model_parameters(const sb_language_model *model)
{
    return model ? model->text.weights : NULL;
}

sb_decoder *sb_language_model_decoder(const sb_language_model *model)
{
    return model ? model->text.decoder : NULL;
}

sb_tensor *sb_language_model_output(const sb_language_model *model, sb_tensor *y)
{
    return model ? text_model_output(model, y) : fail_null("language_model", "model");
}

/* ---- forward ---- */

/* The decoder's input: "begin", then the ids but the last. Negative ids become padding. */
static sb_tensor *language_model_input(const sb_language_model *m, sb_tensor *ids)
{
    if (!ids)
        return fail_null("language_model", "ids");
    if (sb_tensor_rank(ids) != 2 || sb_tensor_dtype(ids) != SB_I32)
        return sb_fail("language_model: ids are %s of rank %d; they must be i32 (batch, length)",
                       sb_dtype_name(sb_tensor_dtype(ids)), sb_tensor_rank(ids));
    int64_t B = sb_tensor_dim(ids, 0), L = sb_tensor_dim(ids, 1);
    const sb_device *device = sb_tensor_device(ids);
    sb_tensor *input = sb_tensor_to(ids, sb_device_cpu());
    const int32_t begin = sb_vocabulary_special(m->text.target, SB_SYMBOL_BEGIN);
    int32_t *to = input ? sb_tensor_data(input) : NULL;
    for (int64_t i = B * L - 1; to && i >= 0; i--)
        to[i] = i % L == 0 ? begin : to[i - 1] < 0 ? SB_SYMBOL_PADDING : to[i - 1];
    input = tensor_moved(input, device);
    return input ? sb_tape_own(input) : NULL;
}

/* A batch of what is read, and of what is expected there, for the text model. */
static sb_batch language_model_batch(sb_tensor *input, sb_tensor *expected)
{
    return (sb_batch){.parts = 2,
                      .part = {{"target_in", input, SB_SEQUENCE_TARGET},
                               {"target_out", expected, SB_SEQUENCE_TARGET}}};
}

sb_tensor *sb_language_model_window_loss(const sb_language_model *model, sb_tensor *input,
                                         sb_tensor *targets)
{
    if (!model || !input || !targets)
        return fail_null("language_model", !model ? "model" : input ? "targets" : "input");
    const sb_batch batch = language_model_batch(input, targets);
    return text_model_loss(model, &batch, SB_LOSS_MEAN);
}

sb_tensor *sb_language_model_window_logits(const sb_language_model *model, sb_tensor *input)
{
    if (!model || !input)
        return fail_null("language_model", model ? "input" : "model");
    const sb_batch batch = language_model_batch(input, NULL);
    return text_model_logits(&model->text, &batch, NULL);
}

sb_tensor *sb_language_model_loss(const sb_language_model *model, sb_tensor *ids)
{
    if (!model)
        return fail_null("language_model", "model");
    sb_tensor *input = language_model_input(model, ids);
    return input ? sb_language_model_window_loss(model, input, ids) : NULL;
}

sb_tensor *sb_language_model_logits(const sb_language_model *model, sb_tensor *ids)
{
    if (!model)
        return fail_null("language_model", "model");
    sb_tensor *input = language_model_input(model, ids);
    return input ? sb_language_model_window_logits(model, input) : NULL;
}

/* ---- the kind ---- */

static void *language_model_build(sb_parameters *weights, const sb_description *d)
{
    return text_model_read(&language_text, weights, (sb_text_model_options){0}, d);
}

static bool language_model_example(const void *self, const char *text, const char *target,
                                   sb_example *e)
{
    (void)target;
    return text_example_of_text(e, self, text, 0);
}

/* Windows, or pairs, whose targets are texts. */
const sb_model_kind language_model_kind = {.name = "language_model",
                                           .build = language_model_build,
                                           .describe = text_model_describe,
                                           .free = text_model_free,
                                           .loss = text_model_loss,
                                           .attentions = text_model_attentions,
                                           .example = language_model_example,
                                           .generator = text_model_generator,
                                           .splits = "batch threads heads sequence"};

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
    generator_texts(model->text.target, 1, &decoded, &text);
    sb_decoded_free(1, &decoded);
    return text;
}
