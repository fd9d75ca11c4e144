#include "tests/support/parallel_run.h"
#include "nn/parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct settings parallel_settings(void)
{
    struct settings s = settings_default();
    s.model.transformer.width = 8;
    s.model.transformer.heads = 2;
    s.model.transformer.feed_forward = 12;
    s.model.transformer.encoder_layers = s.model.transformer.decoder_layers = 2;
    s.model.transformer.dropout = 0;
    s.model.label_smoothing = 0.1;
    s.trainer.optimiser.schedule.kind = SB_SCHEDULE_CONSTANT;
    s.trainer.optimiser.schedule.warmup = 3;
    s.data.batch_pairs = 7;
    s.task = (sb_task_options){.min_length = 1, .max_length = 5};
    return s;
}

/* What is trained. */
struct parts {
    sb_data *data;
    sb_parameters *weights;
    sb_seq2seq *model;
    sb_trainer *trainer;
};

static sb_data *open_data(const struct settings *s, const sb_pairs *pairs)
{
    sb_data_options options = s->data;
    options.seed = s->trainer.seed;
    if (!pairs)
        return sb_data_task_with(SB_TASK_REVERSE, &s->task, &options);
    const sb_vocabulary_options letters = {.units = SB_UNITS_CHARACTERS};
    sb_vocabulary *v = sb_vocabulary_new(sb_pairs_sources(pairs), sb_pairs_count(pairs), &letters);
    sb_data *data = v ? sb_data_new(pairs, v, v, &options) : NULL;
    sb_vocabulary_release(v);
    return data;
}

static bool open_parts(struct parts *p, const struct settings *s, const sb_pairs *pairs,
                       sb_dtype dtype)
{
    *p = (struct parts){.data = open_data(s, pairs)};
    p->weights = p->data ? sb_parameters_of(dtype, s->trainer.seed) : NULL;
    p->model = p->weights ? sb_seq2seq_new(p->weights, p->data, &s->model) : NULL;
    p->trainer = p->model ? sb_trainer_new(p->model, p->data, &s->trainer) : NULL;
    return p->trainer != NULL;
}

static void close_parts(struct parts *p)
{
    sb_trainer_free(p->trainer);
    sb_seq2seq_free(p->model);
    sb_parameters_free(p->weights);
    sb_data_free(p->data);
}

/* The gradient in the flat buffer after a step: that of the mean loss, or of the sum. */
static bool take_gradient(struct parallel_run *run, const struct parts *p, bool mean,
                          int64_t targets)
{
    const int64_t count = sb_parameters_count(p->weights);
    sb_tensor *g = parts_join(p->weights, parameters_gradients(p->weights), 0, count);
    if (!g)
        return false;
    run->size = tensor_size(g);
    run->gradient = malloc((size_t)run->size * sizeof(double));
    const bool ok = tensor_read_part(g, 0, run->size, run->gradient);
    for (int64_t i = 0; i < run->size && !mean; i++)
        run->gradient[i] /= (double)targets;
    sb_tensor_release(g);
    return ok;
}

/* A hash of all weights. */
static bool take_bits(struct parallel_run *run, const struct parts *p)
{
    const int64_t count = sb_parameters_count(p->weights);
    sb_tensor *w = parts_join(p->weights, parameters_values(p->weights), 0, count);
    const unsigned char *byte = w ? w->data : NULL;
    for (size_t i = 0; w && i < tensor_bytes(w); i++)
        run->bits = (run->bits ^ byte[i]) * 0x100000001b3u;
    sb_tensor_release(w);
    return w != NULL;
}

static bool train(struct parallel_run *run, struct parts *p, bool mean)
{
    for (int i = 0; i < run->steps; i++) {
        sb_trained trained;
        if (!sb_trainer_step(p->trainer, &trained) ||
            (i == 0 && !take_gradient(run, p, mean, trained.targets)))
            return false;
        run->loss[i] = trained.loss;
    }
    run->position = sb_trainer_save(p->trainer).random_position;
    return take_bits(run, p);
}

void parallel_run_make(struct parallel_run *run, sb_communicator *c, int heads,
                       const struct settings *settings, const sb_pairs *pairs, sb_dtype dtype,
                       int steps)
{
    const int rank = sb_communicator_rank(c);
    struct settings s = *settings;
    struct parts parts;
    sb_communicator *ranks = sb_communicator_split(c, rank / heads, rank);
    sb_communicator *others = sb_communicator_split(c, rank % heads, rank);
    s.model.transformer.ranks = ranks;
    s.trainer.communicator = others;
    s.trainer.sequence_ranks = c ? s.trainer.sequence_ranks : 0;
    *run = (struct parallel_run){.steps = steps};
    run->ok = open_parts(&parts, &s, pairs, dtype) &&
              train(run, &parts, s.trainer.accumulate == 1 && sb_communicator_size(others) == 1);
    if (!run->ok)
        snprintf(run->message, sizeof run->message, "%s", sb_error());
    close_parts(&parts);
    sb_communicator_close(others);
    sb_communicator_close(ranks);
}

void parallel_run_free(struct parallel_run *run)
{
    free(run->gradient);
    *run = (struct parallel_run){.ok = false};
}

struct parallel_compared parallel_compare(const struct parallel_run *a,
                                          const struct parallel_run *b)
{
    struct parallel_compared c = {0, 0};
    double most = 0, apart = 0;
    for (int64_t i = 0; i < b->size; i++) {
        const double difference = fabs(a->gradient[i] - b->gradient[i]);
        apart = difference <= apart ? apart : difference; /* a NaN too */
        most = fmax(most, fabs(b->gradient[i]));
    }
    c.gradients = apart / most;
    for (int i = 0; i < b->steps; i++) {
        const double difference = fabs(a->loss[i] - b->loss[i]) / b->loss[i];
        c.losses = difference <= c.losses ? c.losses : difference;
    }
    return c;
}
