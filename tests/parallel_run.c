#include "tests/parallel_run.h"
#include "nn/flat.h"
#include <stdio.h>

struct settings parallel_settings(void)
{
    struct settings s = small_settings();
    s.model.transformer.dropout = 0;
    s.model.transformer.encoder_layers = s.model.transformer.decoder_layers = 2;
    s.model.label_smoothing = 0.1;
    s.data.batch_pairs = 7;
    return s;
}

/* What the optimiser has left in the flat buffer; of several batches or ranks it is the gradient of
   the summed loss. */
static void take_gradient(struct parallel_run *run, const struct small_run *small, bool mean,
                          int64_t targets)
{
    const sb_tensor *g = parameters_gradients(small->weights);
    run->size = tensor_size(g);
    run->gradient = malloc((size_t)run->size * sizeof(double));
    run->ok = tensor_read_part(g, 0, run->size, run->gradient);
    for (int64_t i = 0; i < run->size && !mean; i++)
        run->gradient[i] /= (double)targets;
}

static void train(struct parallel_run *run, struct small_run *small, bool mean)
{
    for (int i = 0; i < run->steps && run->ok; i++) {
        sb_trained trained;
        run->ok = sb_trainer_step(small->trainer, &trained);
        run->loss[i] = trained.loss;
        if (run->ok && i == 0)
            take_gradient(run, small, mean, trained.targets);
    }
    run->bits = small_run_bits(small);
    run->position = sb_trainer_save(small->trainer).random_position;
}

void parallel_run_make(struct parallel_run *run, sb_communicator *c,
                       const struct settings *settings, const sb_pairs *pairs, sb_dtype dtype,
                       int steps)
{
    struct settings s = *settings;
    struct small_run small;
    s.trainer.communicator = c;
    *run = (struct parallel_run){.steps = steps};
    run->ok = small_run_open(&small, &s, pairs, dtype);
    if (run->ok) {
        train(run, &small, s.trainer.accumulate == 1 && sb_communicator_size(c) == 1);
        small_run_close(&small);
    }
    if (!run->ok)
        snprintf(run->message, sizeof run->message, "%s", sb_error());
}

void parallel_run_free(struct parallel_run *run)
{
    free(run->gradient);
    *run = (struct parallel_run){.ok = false};
}

struct parallel_compared parallel_compare(const struct parallel_run *a,
                                          const struct parallel_run *b)
{
    struct parallel_compared c = {test_relative_arrays(b->size, a->gradient, b->gradient), 0};
    for (int i = 0; i < b->steps; i++)
        c.losses = fmax(c.losses, fabs(a->loss[i] - b->loss[i]) / b->loss[i]);
    return c;
}
