#include "tests/support/parallel_run.h"
#include "nn/parts.h"
#include "tensor/hash.h"
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
    s.model.context = 6;
    s.task = (sb_task_options){.min_length = 1, .max_length = 5};
    return s;
}

/* The gradient in the flat buffer after a step: that of the mean loss, or of the sum. */
static bool take_gradient(struct parallel_run *run, const struct parallel_parts *p, bool mean,
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
static bool take_bits(struct parallel_run *run, const struct parallel_parts *p)
{
    const int64_t count = sb_parameters_count(p->weights);
    sb_tensor *w = parts_join(p->weights, parameters_values(p->weights), 0, count);
    const size_t size = w ? (size_t)tensor_size(w) * sizeof(double) : 0;
    unsigned char *byte = malloc(size + 1);
    const bool ok = w && byte && tensor_read_part(w, 0, tensor_size(w), (double *)(void *)byte);
    if (ok)
        run->bits = hash_add(run->bits, byte, size);
    free(byte);
    sb_tensor_release(w);
    return ok;
}

static bool train(struct parallel_run *run, struct parallel_parts *p, bool mean)
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

void parallel_run_make(struct parallel_run *run, sb_communicator *c, const struct parallel_job *job)
{
    const int rank = sb_communicator_rank(c), heads = job->heads ? job->heads : 1;
    struct settings s = *job->settings;
    struct parallel_parts parts;
    sb_communicator *ranks = sb_communicator_split(c, rank / heads, rank);
    sb_communicator *others = sb_communicator_split(c, rank % heads, rank);
    s.model.transformer.ranks = ranks;
    s.trainer.communicator = others;
    s.trainer.sequence_ranks = c ? s.trainer.sequence_ranks : 0;
    *run = (struct parallel_run){.steps = job->steps};
    run->ok = parallel_parts_open(&parts, job->kind, &s, job->pairs, job->dtype) &&
              train(run, &parts, s.trainer.accumulate == 1 && sb_communicator_size(others) == 1);
    if (!run->ok)
        snprintf(run->message, sizeof run->message, "%s", sb_error());
    parallel_parts_close(&parts);
    sb_communicator_close(others);
    sb_communicator_close(ranks);
}

void parallel_run_rank(sb_communicator *c, void *ranks_)
{
    struct parallel_ranks *ranks = ranks_;
    struct parallel_run *run = &ranks->run[sb_communicator_rank(c)];
    parallel_run_make(run, c, &ranks->one);
    if (run->ok)
        return;
    fprintf(stderr, "rank %d: %s\n", sb_communicator_rank(c), run->message);
    abort();
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
