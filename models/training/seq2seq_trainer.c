/* The trainer of encoder-decoders on sentence pairs. */
#include "models/data/data_source.h"
#include "models/seq2seq_kind.h"
#include "models/training/trainer.h"
#include "tensor/failure.h"

sb_trainer *sb_trainer_new(sb_seq2seq *model, sb_data *data, const sb_trainer_options *options)
{
    if (!model || !data)
        return fail_null("trainer", model ? "data" : "model");
    const sb_model subject = sb_seq2seq_as_model(model);
    const sb_source source = sb_data_as_source(data);
    return sb_trainer_for(&subject, &source, options);
}

sb_seq2seq *sb_trainer_model(const sb_trainer *trainer)
{
    const sb_model *model = sb_trainer_subject(trainer);
    return model && model->kind == &seq2seq_kind ? model->self : NULL;
}

sb_data *sb_trainer_data(const sb_trainer *trainer)
{
    return trainer ? data_of_source(sb_trainer_source(trainer)) : NULL;
}
