/*
 * A program outside the library with its own model, trained by the library's trainer: a regression
 * on vectors. It has no vocabulary, its own batches, and its own source.
 *
 *     regression FILE STEPS [STOP]
 *
 * resumes from FILE, if it exists, trains up to STEPS steps, and saves it every five. With STOP it
 * is killed before that step. Several ranks (mpirun) share each batch. At the end the first rank
 * prints the loss and all weights.
 */
#include <signal.h>
#include <softback/softback.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model: y = W2 tanh(W1 x + b1) + b2 ---- */

struct regression {
    int64_t inputs, hidden;
    sb_linear_layer first, second;
};

static void *regression_new(sb_parameters *weights, int64_t inputs, int64_t hidden)
{
    struct regression *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct regression){.inputs = inputs, .hidden = hidden};
    if (sb_linear_layer_init(&r->first, weights, "first", inputs, hidden, true) &&
        sb_linear_layer_init(&r->second, weights, "second", hidden, 1, true))
        return r;
    free(r);
    return NULL;
}

static void *regression_build(sb_parameters *weights, const sb_description *d)
{
    double inputs, hidden;
    return sb_description_number(d, "inputs", 1, 1000, &inputs) &&
                   sb_description_number(d, "hidden", 1, 1000, &hidden)
               ? regression_new(weights, (int64_t)inputs, (int64_t)hidden)
               : NULL;
}

static bool regression_describe(const void *self, sb_description *d)
{
    const struct regression *r = self;
    return sb_description_set_number(d, "inputs", (double)r->inputs) &&
           sb_description_set_number(d, "hidden", (double)r->hidden);
}

static sb_tensor *regression_loss(const void *self, const sb_batch *batch, sb_loss loss)
{
    const struct regression *r = self;
    sb_tensor *h = sb_tanh(
        sb_linear_layer_forward(&r->first, sb_batch_get(batch, "x"), SB_ACTIVATION_IDENTITY));
    sb_tensor *y = sb_linear_layer_forward(&r->second, sb_dropout(h, 0.1), SB_ACTIVATION_IDENTITY);
    sb_tensor *wrong = sb_subtract(y, sb_batch_get(batch, "y"));
    sb_tensor *sum = sb_sum(sb_multiply(wrong, wrong), SB_ALL, false);
    return loss == SB_LOSS_MEAN ? sb_scale(sum, 1 / (double)batch->targets) : sum;
}

static const sb_model_kind regression_kind = {.name = "regression",
                                              .build = regression_build,
                                              .describe = regression_describe,
                                              .free = free,
                                              .loss = regression_loss};

/* ---- the source: eight batches an epoch, each a function of its position ---- */

enum { ITEMS = 12, INPUTS = 3, BATCHES = 8 };

struct points {
    sb_data_position next;
    sb_batch batch;
};

static void points_forget(struct points *p)
{
    for (int i = 0; i < p->batch.parts; i++)
        sb_tensor_release(p->batch.part[i].t);
    p->batch.parts = 0;
}

static const sb_batch *points_next(void *object)
{
    struct points *p = object;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    random.position += (uint64_t)(p->next.epoch * BATCHES + p->next.batch) << 10;
    double x[ITEMS * INPUTS], y[ITEMS] = {0};
    for (int i = 0; i < ITEMS * INPUTS; i++) {
        x[i] = sb_random_normal(&random);
        y[i / INPUTS] += x[i] * (i % INPUTS - 1) / 2;
    }
    points_forget(p);
    p->batch = (sb_batch){
        .items = ITEMS,
        .targets = ITEMS,
        .parts = 2,
        .part = {
            {"x", sb_tensor_from_doubles(SB_F64, SB_SHAPE(ITEMS, INPUTS), x), SB_SEQUENCE_NONE},
            {"y", sb_tensor_from_doubles(SB_F64, SB_SHAPE(ITEMS, 1), y), SB_SEQUENCE_NONE}}};
    if (++p->next.batch == BATCHES)
        p->next = (sb_data_position){p->next.epoch + 1, 0};
    return p->batch.part[0].t && p->batch.part[1].t ? &p->batch : NULL;
}

static sb_data_position points_tell(const void *object)
{
    const struct points *p = object;
    return p->next;
}

static bool points_seek(void *object, sb_data_position position)
{
    struct points *p = object;
    p->next = position;
    return position.batch < BATCHES;
}

static uint64_t points_hash(const void *object)
{
    (void)object;
    return 1; /* of the seed */
}

static int64_t points_batches(const void *object)
{
    (void)object;
    return BATCHES;
}

/* ---- training ---- */

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    return file && fclose(file) == 0;
}

/* Trains up to `steps`; the first rank saves. */
static bool train(sb_trainer *trainer, const char *path, int64_t steps, int64_t stop, bool first)
{
    sb_trained trained = {0};
    for (int64_t step; (step = sb_trainer_steps(trainer)) < steps;) {
        if (step + 1 == stop)
            raise(SIGKILL);
        if (!sb_trainer_step(trainer, &trained) ||
            (first && (step + 1) % 5 == 0 && !sb_checkpoint_save(trainer, path)))
            return false;
    }
    if (first)
        printf("loss %.17g\n", trained.loss);
    return true;
}

static void print_weights(const sb_parameters *weights)
{
    for (int64_t i = 0; i < sb_parameters_count(weights); i++)
        for (int64_t e = 0; e < sb_tensor_size(sb_parameters_get(weights, i)); e++)
            printf("%s %.17g\n", sb_parameters_name(weights, i),
                   sb_tensor_get(sb_parameters_get(weights, i), e));
}

/* Evaluates the trained model from its file, as another program would. */
static bool evaluate(const char *path, const sb_source *source)
{
    sb_parameters *weights = sb_parameters_of(SB_F64, 1);
    sb_model model;
    sb_evaluation evaluation = {0};
    const bool loaded = sb_model_load(&model, &regression_kind, weights, path);
    const bool ok = loaded && sb_evaluate(&model, source, NULL, NULL, &evaluation);
    if (ok)
        printf("evaluated %.17g\n", evaluation.loss);
    if (loaded)
        sb_model_free(&model);
    sb_parameters_free(weights);
    return ok;
}

static bool run(sb_communicator *ranks, const char *path, int64_t steps, int64_t stop)
{
    const bool first = sb_communicator_rank(ranks) == 0;
    struct points points = {0};
    const sb_source source = {&points,     points_next, points_tell,
                              points_seek, points_hash, points_batches};
    sb_parameters *weights = sb_parameters_of(SB_F64, 1);
    const sb_model model = {&regression_kind, regression_new(weights, INPUTS, 8), weights};
    const sb_trainer_options options = {
        .seed = 2, .optimiser = {.schedule = {.rate = 0.01}}, .communicator = ranks};
    sb_trainer *trainer = model.self ? sb_trainer_for(&model, &source, &options) : NULL;
    bool ok = trainer && (!exists(path) || sb_checkpoint_resume(trainer, path)) &&
              train(trainer, path, steps, stop, first);
    if (ok && first) {
        print_weights(weights);
        ok = evaluate(path, &source);
    }
    sb_trainer_free(trainer);
    free(model.self);
    sb_parameters_free(weights);
    points_forget(&points);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    sb_communicator *ranks = sb_communicator_world();
    const bool ok = run(ranks, argv[1], atoll(argv[2]), argc > 3 ? atoll(argv[3]) : 0);
    if (!ok)
        printf("regression: %s\n", sb_error());
    sb_communicator_close(ranks);
    return ok ? 0 : 1;
}
