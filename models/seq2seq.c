#include "models/seq2seq.h"
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

static bool check(const sb_seq2seq_options *o, const sb_vocabulary *source,
                  const sb_vocabulary *target)
{
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return sb_fail("seq2seq: label_smoothing is %g, not in [0, 1)", o->label_smoothing);
    if (o->share_embeddings && source != target)
        return sb_fail("seq2seq: shared embeddings need one vocabulary for source and target");
    return true;
}

static bool build(sb_seq2seq *m)
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
    return sb_output_head_init(&m->output, m->weights, "output", o->width, Vt, tied);
}

sb_seq2seq *sb_seq2seq_for(sb_parameters *weights, sb_vocabulary *source, sb_vocabulary *target,
                           const sb_seq2seq_options *options)
{
    if (!weights || !source || !target)
        return fail_null("seq2seq", !weights ? "weights" : !source ? "source" : "target");
    sb_seq2seq_options o = options ? *options : (sb_seq2seq_options){0};
    if (!sb_transformer_complete(&o.transformer, &o.transformer) || !check(&o, source, target))
        return NULL;
    sb_seq2seq *m = memory_new(sizeof *m);
    if (!m)
        return sb_fail("seq2seq: out of memory");
    *m = (sb_seq2seq){.options = o, .weights = weights};
    m->source = sb_vocabulary_retain(source);
    m->target = sb_vocabulary_retain(target);
    const struct parameters_mark mark = parameters_mark(weights);
    if (build(m))
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

/* What the decoder makes of the batch, (B, Lt, C). */
static sb_tensor *decode(const sb_seq2seq *m, const sb_batch *batch,
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

static sb_tensor *loss(const sb_seq2seq *m, const sb_batch *batch,
                       const sb_cross_entropy_options *options)
{
    sb_tensor *y = decode(m, batch, NULL), *target = y ? sb_batch_get(batch, "target_out") : NULL;
    return target ? sb_output_head_loss(&m->output, y, target, options) : NULL;
}

sb_tensor *sb_seq2seq_loss(const sb_seq2seq *model, const sb_batch *batch)
{
    sb_cross_entropy_options options = {.label_smoothing =
                                            model ? model->options.label_smoothing : 0};
    return loss(model, batch, &options);
}

sb_tensor *sb_seq2seq_loss_sum(const sb_seq2seq *model, const sb_batch *batch)
{
    sb_cross_entropy_options options = {
        .label_smoothing = model ? model->options.label_smoothing : 0, .reduction = SB_SUM};
    return loss(model, batch, &options);
}

sb_tensor *sb_seq2seq_cost(const sb_seq2seq *model, const sb_batch *batch)
{
    sb_cross_entropy_options options = {.reduction = SB_SUM};
    return loss(model, batch, &options);
}

sb_tensor *sb_seq2seq_logits(const sb_seq2seq *model, const sb_batch *batch,
                             const sb_seq2seq_weights *weights)
{
    sb_tensor *y = decode(model, batch, weights);
    return y ? sb_seq2seq_output(model, y) : NULL;
}
