/* The losses of 300 training steps of a language model follow PyTorch's. See language.py in
   tests/golden/references. */
#include "tests/support/reference.h"
#include <stdio.h>

enum { STEPS = 300, BATCHES = 6, LONGEST = 16, LETTERS = 27 };

#define TRANSFORMER(...)                                                                           \
    .transformer = {.width = 16,                                                                   \
                    .heads = 2,                                                                    \
                    .feed_forward = 32,                                                            \
                    .decoder_layers = 2,                                                           \
                    .positions_longest = LONGEST,                                                  \
                    __VA_ARGS__}

struct recipe {
    const char *path;
    sb_language_model_options model;
    sb_optimiser *(*new_optimiser)(sb_parameters *set, const sb_optimiser_options *options);
    sb_optimiser_options optimiser;
};

static const struct recipe with_adam = {
    "adam",
    {TRANSFORMER(.norm_place = SB_NORM_PRE)},
    sb_adam_new,
    {.learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9}};

static const struct recipe with_adamw = {
    "adamw",
    {TRANSFORMER(.norm_place = SB_NORM_POST, .activation = SB_ACTIVATION_GELU,
                 .positions = SB_POSITIONS_LEARNED),
     .tie_embeddings = true, .label_smoothing = 0.1},
    sb_adamw_new,
    {.schedule = {SB_SCHEDULE_INVERSE_ROOT, .rate = 0.005, .warmup = 20},
     .beta1 = 0.9,
     .beta2 = 0.98,
     .epsilon = 1e-8,
     .weight_decay = 0.01,
     .decay_all = true,
     .clip = 1}};

/* A vocabulary of as many symbols as the reference's text has. */
static sb_vocabulary *vocabulary_of_letters(void)
{
    const char *text = "abcdefghijklmnopqrstuvwxyz ";
    const sb_vocabulary_options options = {.units = SB_UNITS_CHARACTERS};
    sb_vocabulary *vocabulary = sb_vocabulary_new(&text, 1, &options);
    MUST(sb_vocabulary_size(vocabulary) == SB_SPECIAL_SYMBOLS + LETTERS);
    return KEPT(vocabulary);
}

/* One step; the loss before it. */
static double step_on(const sb_safetensors *file, int i, const sb_language_model *model,
                      sb_optimiser *optimiser)
{
    char name[32];
    snprintf(name, sizeof name, "batch.%d", i);
    TAPE(SB_RECORD);
    sb_tensor *input = reference_tensor(file, reference_name(name, "input").text, SB_F32),
              *targets = reference_tensor(file, reference_name(name, "targets").text, SB_F32),
              *loss = sb_language_model_window_loss(model, input, targets);
    MUST(sb_backward(loss) && sb_optimiser_step(optimiser));
    const double value = sb_tensor_value(loss);
    return value;
}

/* Each loss, before the step, is within this share of PyTorch's in float64. */
static void expect_losses(const sb_safetensors *file, const struct recipe *r, sb_dtype dtype,
                          double share)
{
    sb_tensor *losses = KEPT(sb_safetensors_tensor(file, reference_name("losses", r->path).text));
    cr_assert(losses && losses->dtype == SB_F64 && sb_tensor_size(losses) == STEPS);
    const double *expected = test_data(losses);
    sb_vocabulary *vocabulary = vocabulary_of_letters();
    sb_parameters *weights = KEPT(sb_parameters_of(dtype, 1));
    sb_language_model *model = KEPT(sb_language_model_for(weights, vocabulary, &r->model));
    reference_read_weights(file, r->path, weights);
    sb_optimiser *optimiser = KEPT(r->new_optimiser(weights, &r->optimiser));
    const int steps = test_slow() ? STEPS / 10 : STEPS;
    for (int step = 0; step < steps; step++) {
        const double loss = step_on(file, step % BATCHES, model, optimiser);
        const double error = fabs(loss - expected[step]) / expected[step];
        cr_expect(error <= share, "%s: the loss of step %d is %.15g, not %.15g", r->path, step + 1,
                  loss, expected[step]);
    }
}

/* In float32 rounding grows from step to step, slowly at Adam's lower rate. */
static void follow(const sb_safetensors *file, const void *recipe, sb_dtype dtype)
{
    if (dtype == SB_F64)
        expect_losses(file, recipe, SB_F64, 1e-9);
    else if (recipe == &with_adam)
        expect_losses(file, recipe, SB_F32, 1e-5);
}

TEST(reference_language, losses_of_pre_norm_with_adam_follow_pytorch)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    sb_safetensors *file = KEPT(reference_open("language"));
    reference_each(follow, file, &with_adam);
}

TEST(reference_language, losses_of_learned_positions_with_adamw_follow_pytorch)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    sb_safetensors *file = KEPT(reference_open("language"));
    reference_each(follow, file, &with_adamw);
}
