/* The description that a training run prints. */
#include "models/kinds.h"
#include "nn/fingerprint.h"
#include "nn/flat.h"
#include "program/run/kind.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"

static void training_describe_model(const struct training *t, FILE *out)
{
    const sb_transformer_options *o = &t->settings.model.transformer;
    const int64_t count = sb_parameters_count(t->weights);
    const int64_t size = parts_size(t->weights, parameters_values(t->weights), 0, count);
    const int64_t trained = parts_size(t->weights, parameters_gradients(t->weights), 0, count);
    const bool encoder = setting_is_of(setting_find("encoder-layers"), t->request->kind->model),
               decoder = setting_is_of(setting_find("decoder-layers"), t->request->kind->model);
    const int layers = encoder ? o->encoder_layers : o->decoder_layers;
    if (encoder && decoder)
        fprintf(out, "model      %d+%d layers, ", o->encoder_layers, o->decoder_layers);
    else
        fprintf(out, "model      %s of %d %s, ", t->request->kind->title, layers,
                layers == 1 ? "layer" : "layers");
    fprintf(out, "width %lld, %lld heads, ", (long long)o->width, (long long)o->heads);
    if (size < 100000)
        fprintf(out, "%s parameters", count_text(size).text);
    else
        fprintf(out, "%.1f M parameters", (double)size / 1e6);
    if (trained < size)
        fprintf(out, ", of which %s are trained", count_text(trained).text);
    fputs("\n", out);
}

static void training_describe_steps(const struct training *t, FILE *out)
{
    const struct settings *s = &t->settings;
    fprintf(out, "training   %s steps of up to %s %s, ", count_text(s->steps).text,
            count_text(t->batch_items * s->trainer.accumulate).text, t->request->kind->items);
    if (s->evaluate_every < s->steps)
        fprintf(out, "evaluated every %s steps\n", count_text(s->evaluate_every).text);
    else
        fputs("evaluated at the end\n", out);
    const int ranks = sb_communicator_size(t->request->communicator);
    if (ranks > 1)
        fprintf(out, "ranks      %d, of %d %s each; Ctrl-C keeps the last checkpoint\n", ranks,
                sb_threads(), sb_threads() == 1 ? "thread" : "threads");
    if (sb_device_in_use() != sb_device_cpu())
        fprintf(out, "device     %s\n", sb_device_description(sb_device_in_use()));
    if (sb_trainer_steps(t->trainer) > 0)
        fprintf(out, "resumed    after step %s\n", count_text(sb_trainer_steps(t->trainer)).text);
}

static void training_describe_from(const struct training *t, FILE *out)
{
    const struct training_request *r = t->request;
    fprintf(out, "from       %s, fingerprint %s\n", foreign(r->from),
            fingerprint_text(t->settings.tuning.base).text);
    if (t->request->kind->describe_unknown)
        t->request->kind->describe_unknown(t, out);
}

void training_describe(const struct training *t, FILE *out)
{
    const struct training_request *request = t->request;
    t->request->kind->describe(t, out);
    if (request->from && !t->resumed)
        training_describe_from(t, out);
    training_describe_model(t, out);
    training_describe_steps(t, out);
}
