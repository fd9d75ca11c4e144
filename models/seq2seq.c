#include "models/seq2seq.h"
#include "models/kinds.h"
#include "models/score.h"
#include "models/text_model.h"
#include "models/translation.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_seq2seq {
    struct text_model text;
};

const sb_seq2seq_options seq2seq_defaults = {.transformer = {.width = 128,
                                                             .heads = 4,
                                                             .encoder_layers = 3,
                                                             .decoder_layers = 3,
                                                             .dropout = 0.1,
                                                             .activation = SB_ACTIVATION_RELU}};

static const struct text_kind seq2seq_text = {.model = &seq2seq_kind,
                                              .source = "source",
                                              .source_lengths = "source_lengths",
                                              .target = "target_in",
                                              .target_lengths = "target_lengths",
                                              .expected = "target_out"};

sb_seq2seq *sb_seq2seq_for(sb_parameters *weights, sb_vocabulary *source, sb_vocabulary *target,
                           const sb_seq2seq_options *options)
{
    if (!weights || !source || !target)
        return fail_null("seq2seq", !weights ? "weights" : !source ? "source" : "target");
    const struct text_words words = {.source = source, .target = target};
    return text_model_new(&seq2seq_text, weights, &words, options);
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
    text_model_free(model);
}

const sb_seq2seq_options *sb_seq2seq_options_of(const sb_seq2seq *model)
{
    return model ? &model->text.options : NULL;
}

sb_vocabulary *sb_seq2seq_source(const sb_seq2seq *model)
{
    return model ? model->text.source : NULL;
}

sb_vocabulary *sb_seq2seq_target(const sb_seq2seq *model)
{
    return model ? model->text.target : NULL;
}

sb_parameters *sb_seq2seq_parameters(const sb_seq2seq *model)
{
    return model ? model->text.weights : NULL;
}

sb_decoder *sb_seq2seq_decoder(const sb_seq2seq *model)
{
    return model ? model->text.decoder : NULL;
}

sb_tensor *sb_seq2seq_encode(const sb_seq2seq *model, sb_tensor *ids, sb_tensor *lengths)
{
    return model ? text_model_encode(model, ids, lengths) : fail_null("seq2seq", "model");
}

sb_tensor *sb_seq2seq_output(const sb_seq2seq *model, sb_tensor *y)
{
    return model ? text_model_output(model, y) : fail_null("seq2seq", "model");
}

static sb_tensor *seq2seq_loss(const sb_seq2seq *m, const sb_batch *batch, sb_loss loss)
{
    return m && batch ? text_model_loss(m, batch, loss)
                      : fail_null("seq2seq", m ? "batch" : "model");
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
    return model && batch ? text_model_logits(&model->text, batch, weights)
                          : fail_null("seq2seq", model ? "batch" : "model");
}

/* ---- the kind ---- */

static void *seq2seq_build(sb_parameters *weights, const sb_description *d)
{
    return text_model_read(&seq2seq_text, weights, seq2seq_defaults, d);
}

static bool seq2seq_score(const void *self, const void *held, sb_communicator *ranks,
                          sb_evaluation *evaluation)
{
    return translation_evaluate(ranks, self, held, evaluation);
}

static bool seq2seq_example(const void *self, const char *text, const char *target, sb_example *e)
{
    return text_example_of_pair(e, self, text,
                                target ? memory_text(target) : sb_translate(self, text, NULL));
}

const sb_model_kind seq2seq_kind = {.name = "seq2seq",
                                    .build = seq2seq_build,
                                    .describe = text_model_describe,
                                    .free = text_model_free,
                                    .loss = text_model_loss,
                                    .score = seq2seq_score,
                                    .attentions = text_model_attentions,
                                    .example = seq2seq_example,
                                    .generator = text_model_generator,
                                    .splits = "batch threads heads sequence"};

sb_model sb_seq2seq_as_model(sb_seq2seq *model)
{
    return (sb_model){&seq2seq_kind, model, sb_seq2seq_parameters(model)};
}
