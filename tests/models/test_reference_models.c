/* The whole encoder-decoder agrees with PyTorch's: logits, loss, the gradients of all weights, and
   the losses of 50 training steps. See models.py and training.py in tests/golden/references. */
#include "tests/support/reference.h"
#include "tests/support/tiny.h"
#include <stdio.h>

struct variant {
    const char *path;
    sb_seq2seq_options options;
};

#define TRANSFORMER(...)                                                                           \
    .transformer = {.width = 8,                                                                    \
                    .heads = 2,                                                                    \
                    .feed_forward = 12,                                                            \
                    .encoder_layers = 2,                                                           \
                    .decoder_layers = 2,                                                           \
                    __VA_ARGS__}

/* A batch of the open tape's tensors. */
static sb_batch read_batch(const sb_safetensors *file, const char *path)
{
    static const char *const names[] = {"source", "source_lengths", "target_in", "target_out"};
    sb_batch batch = {.parts = 4};
    for (int i = 0; i < 4; i++)
        batch.part[i] = (sb_batch_part){
            .name = names[i],
            .t = reference_tensor(file, reference_name(path, names[i]).text, SB_F32)};
    return batch;
}

static void compare(const sb_safetensors *file, const void *context, sb_dtype dtype)
{
    const struct variant *v = context;
    struct tiny tiny = tiny_new(dtype, 1, &v->options);
    reference_read_weights(file, v->path, tiny.weights);
    TAPE(SB_RECORD);
    sb_batch batch = read_batch(file, v->path);
    sb_tensor *logits = sb_seq2seq_logits(tiny.model, &batch, NULL);
    reference_expect(file, reference_name(v->path, "logits").text, logits, 0);
    sb_tensor *loss = sb_seq2seq_loss(tiny.model, &batch);
    sb_tensor *dy = reference_tensor(file, reference_name(v->path, "dy").text, dtype);
    cr_assert(sb_backward_from(sb_keep(loss), dy), "%s: %s", v->path, sb_error());
    reference_expect_value(file, v->path, loss);
    reference_expect_weights(file, v->path, tiny.weights);
}

TEST(reference_models, models_are_as_in_pytorch)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    static const struct variant variants[] = {
        {"model/pre", {TRANSFORMER(.norm_place = SB_NORM_PRE), .label_smoothing = 0.1}},
        {"model/post", {TRANSFORMER(.norm_place = SB_NORM_POST), .label_smoothing = 0.1}},
        {"model/pre_tied",
         {TRANSFORMER(.norm_place = SB_NORM_PRE), .tie_embeddings = true, .label_smoothing = 0.1}},
        {"model/post_tied_shared_gelu",
         {TRANSFORMER(.norm_place = SB_NORM_POST, .activation = SB_ACTIVATION_GELU),
          .tie_embeddings = true, .share_embeddings = true, .label_smoothing = 0.1}}};
    sb_safetensors *file = KEPT(reference_open("models"));
    reference_expect_count(file, "model", 4);
    for (int i = 0; i < 4; i++)
        reference_each(compare, file, &variants[i]);
}

enum { STEPS = 50, BATCHES = 10 };

/* Each loss, before the step, is within 1e-9 of PyTorch's. */
static void train(const sb_safetensors *file, struct tiny *tiny, sb_optimiser *optimiser,
                  const double *expected, const char *path)
{
    cr_assert(optimiser, "%s", sb_error());
    for (int step = 0; step < (test_brief() ? STEPS / 3 : STEPS); step++) {
        char name[32];
        snprintf(name, sizeof name, "batch.%d", step % BATCHES);
        TAPE(SB_RECORD);
        sb_batch batch = read_batch(file, name);
        sb_tensor *loss = sb_seq2seq_loss(tiny->model, &batch);
        cr_assert(sb_backward(loss) && sb_optimiser_step(optimiser), "%s", sb_error());
        double error = fabs(sb_tensor_value(loss) - expected[step]);
        cr_expect(error <= 1e-9 * expected[step], "%s: the loss of step %d is %.15g, not %.15g",
                  path, step + 1, sb_tensor_value(loss), expected[step]);
    }
    sb_optimiser_free(optimiser);
}

static void expect_losses(const char *path, const sb_seq2seq_options *options,
                          sb_optimiser *(*new_optimiser)(sb_parameters *set,
                                                         const sb_optimiser_options *options),
                          const sb_optimiser_options *optimiser_options)
{
    sb_safetensors *file = KEPT(reference_open("training"));
    sb_tensor *losses = KEPT(sb_safetensors_tensor(file, reference_name("losses", path).text));
    cr_assert(losses && losses->dtype == SB_F64 && sb_tensor_size(losses) == STEPS);
    struct tiny tiny = tiny_new(SB_F64, 1, options);
    reference_read_weights(file, path, tiny.weights);
    train(file, &tiny, new_optimiser(tiny.weights, optimiser_options), test_data(losses), path);
}

TEST(reference_models, losses_of_pre_norm_with_adam_follow_pytorch)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    const sb_seq2seq_options model = {TRANSFORMER(.norm_place = SB_NORM_PRE)};
    expect_losses("pre", &model, sb_adam_new,
                  &(sb_optimiser_options){
                      .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9});
}

TEST(reference_models, losses_of_post_norm_with_adamw_and_a_schedule_follow_pytorch)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    const sb_seq2seq_options model = {TRANSFORMER(.norm_place = SB_NORM_POST),
                                      .tie_embeddings = true, .label_smoothing = 0.1};
    expect_losses(
        "post", &model, sb_adamw_new,
        &(sb_optimiser_options){.schedule = {SB_SCHEDULE_INVERSE_ROOT, .rate = 0.02, .warmup = 10},
                                .beta1 = 0.9,
                                .beta2 = 0.98,
                                .epsilon = 1e-8,
                                .weight_decay = 0.01,
                                .decay_all = true,
                                .clip = 1});
}

TEST(reference_models, losses_of_shared_embeddings_with_momentum_follow_pytorch)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    const sb_seq2seq_options model = {
        TRANSFORMER(.norm_place = SB_NORM_PRE, .activation = SB_ACTIVATION_GELU),
        .tie_embeddings = true, .share_embeddings = true};
    expect_losses("momentum", &model, sb_sgd_new,
                  &(sb_optimiser_options){.learning_rate = 0.05,
                                          .momentum = 0.9,
                                          .nesterov = true,
                                          .weight_decay = 1e-3,
                                          .clip = 0.5});
}
