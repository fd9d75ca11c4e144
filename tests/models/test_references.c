/* Models against PyTorch. */
#include "tests/support/reference.h"
#include "tests/support/tiny.h"
#include <stdio.h>

/* The whole encoder-decoder agrees with PyTorch's: logits, loss, the gradients of all weights, and
   the losses of 50 training steps. See models.py and training.py in tests/golden/references. */

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

TEST(reference_models, models_are_as_in_pytorch, KNOWN_KERNELS)
{
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
    MUST(optimiser);
    for (int step = 0; step < (test_brief() ? STEPS / 3 : STEPS); step++) {
        char name[32];
        snprintf(name, sizeof name, "batch.%d", step % BATCHES);
        TAPE(SB_RECORD);
        sb_batch batch = read_batch(file, name);
        sb_tensor *loss = sb_seq2seq_loss(tiny->model, &batch);
        MUST(sb_backward(loss) && sb_optimiser_step(optimiser));
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

TEST(reference_models, losses_of_pre_norm_with_adam_follow_pytorch, WHOLE_MODELS)
{
    const sb_seq2seq_options model = {TRANSFORMER(.norm_place = SB_NORM_PRE)};
    expect_losses("pre", &model, sb_adam_new,
                  &(sb_optimiser_options){
                      .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9});
}

TEST(reference_models, losses_of_post_norm_with_adamw_and_a_schedule_follow_pytorch, WHOLE_MODELS)
{
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

TEST(reference_models, losses_of_shared_embeddings_with_momentum_follow_pytorch, WHOLE_MODELS)
{
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

/* Products with the Hessian agree with PyTorch's double backward: see second_order.py in
   tests/golden/references. */

enum { INPUTS = 3 };

struct product {
    const char *path;
    sb_function f;
    sb_tensor *w;
};

FUNCTION(attention_product, sb_attention(x[0], x[1], x[2],
                                         &(sb_attention_options){.layout = SB_LAYOUT_HEADS_FIRST,
                                                                 .mask = sb_mask_causal_last()}))
FUNCTION(layer_norm_product, sb_layer_norm(x[0], x[1], x[2], 1e-5))
FUNCTION(cross_entropy_product,
         sb_cross_entropy(x[0], x[1],
                          &(sb_cross_entropy_options){.label_smoothing = 0.1,
                                                      .reduction = SB_REDUCE_NONE}))

/* The sum of w y^2 */
static sb_tensor *run_product(void *context, sb_tensor *const x[])
{
    const struct product *p = context;
    sb_tensor *y = p->f(NULL, x);
    sb_tensor *squares = sb_multiply(p->w, sb_multiply(y, y));
    return sb_sum(sb_reshape(squares, 1, (const int64_t[]){-1}), 0, false);
}

/* The greatest difference is at most 1e-10 of the largest number. */
static void expect_near(const sb_safetensors *file, const char *path, const char *last,
                        const sb_tensor *got, double largest)
{
    sb_tensor *expected = KEPT(sb_safetensors_tensor(file, reference_name(path, last).text));
    cr_assert(expected && sb_tensor_size(expected) == sb_tensor_size(got), "%s.%s", path, last);
    for (int64_t i = 0; i < sb_tensor_size(got); i++)
        cr_expect(fabs(sb_tensor_get(got, i) - sb_tensor_get(expected, i)) <= 1e-10 * largest,
                  "%s.%s, element %lld", path, last, (long long)i);
}

static sb_tensor *read(const sb_safetensors *file, const char *path, const char *last)
{
    sb_tensor *t = KEPT(sb_safetensors_tensor(file, reference_name(path, last).text));
    if (!t || t->dtype != SB_F32)
        return t;
    return KEPT(sb_tensor_from_doubles(SB_F64, t->rank, t->dim, numbers_of(t)));
}

static void compare_product(const sb_safetensors *file, struct product p)
{
    sb_tensor *x[INPUTS] = {NULL}, *v[INPUTS] = {NULL}, *h[INPUTS] = {NULL};
    char last[8];
    int n = 0;
    for (; n < INPUTS; n++) {
        snprintf(last, sizeof last, "%d", n);
        if (sb_safetensors_find(file, reference_name(p.path, last).text) < 0)
            break;
        x[n] = read(file, p.path, last);
        snprintf(last, sizeof last, "v.%d", n);
        if (x[n]->dtype == SB_F64)
            v[n] = read(file, p.path, last);
    }
    p.w = read(file, p.path, "w");
    cr_assert(n > 0 && sb_hvp(run_product, &p, x, v, n, h), "%s: %s", p.path, sb_error());
    for (int i = 0; i < n; i++) {
        snprintf(last, sizeof last, "h.%d", i);
        if (h[i])
            expect_near(file, p.path, last, KEPT(h[i]), largest_of(h[i]));
    }
}

CPU_TEST(reference_second_order, products_of_operations_are_as_in_pytorch)
{
    sb_safetensors *file = KEPT(reference_open("second_order"));
    compare_product(file, (struct product){.path = "product/attention", .f = attention_product});
    compare_product(file, (struct product){.path = "product/layer_norm", .f = layer_norm_product});
    compare_product(file,
                    (struct product){.path = "product/cross_entropy", .f = cross_entropy_product});
}

struct whole {
    const sb_safetensors *file;
    sb_seq2seq *model;
};

static sb_tensor *run_whole(void *context, sb_tensor *const x[])
{
    static const char *const names[] = {"source", "source_lengths", "target_in", "target_out"};
    const struct whole *whole = context;
    sb_batch batch = {.parts = 4};
    (void)x;
    for (int i = 0; i < 4; i++)
        batch.part[i] = (sb_batch_part){
            .name = names[i],
            .t = reference_tensor(whole->file, reference_name("model", names[i]).text, SB_F32)};
    return sb_seq2seq_loss(whole->model, &batch);
}

CPU_TEST(reference_second_order, products_of_an_encoder_decoder_are_as_in_pytorch)
{
    const sb_seq2seq_options options = {.transformer = {.width = 8,
                                                        .heads = 2,
                                                        .feed_forward = 12,
                                                        .encoder_layers = 2,
                                                        .decoder_layers = 2,
                                                        .activation = SB_ACTIVATION_GELU},
                                        .label_smoothing = 0.1};
    sb_safetensors *file = KEPT(reference_open("second_order"));
    struct tiny tiny = tiny_new(SB_F64, 1, &options);
    reference_read_weights(file, "model", tiny.weights);
    const int n = (int)sb_parameters_count(tiny.weights);
    sb_tensor **x = tiny_parameters(tiny.weights), **v = KEPT(calloc((size_t)n, sizeof *v)),
              **h = KEPT(calloc((size_t)n, sizeof *h));
    for (int i = 0; i < n; i++)
        v[i] = read(file, "model.v", sb_parameters_name(tiny.weights, i));
    struct whole whole = {file, tiny.model};
    MUST(sb_hvp(run_whole, &whole, x, v, n, h));
    double largest =
        0; /* of all: a key's bias changes all scores of a row alike, so its part is 0 */
    for (int i = 0; i < n; i++)
        largest = fmax(largest, largest_of(KEPT(h[i])));
    for (int i = 0; i < n; i++)
        expect_near(file, "model.h", sb_parameters_name(tiny.weights, i), h[i], largest);
}

/* The losses of 300 training steps of a language model follow PyTorch's. See language.py in
   tests/golden/references. */

enum { LANGUAGE_STEPS = 300, LANGUAGE_BATCHES = 6, LONGEST = 16, LETTERS = 27 };

#define LANGUAGE_TRANSFORMER(...)                                                                  \
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
    {LANGUAGE_TRANSFORMER(.norm_place = SB_NORM_PRE)},
    sb_adam_new,
    {.learning_rate = 0.001, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9}};

static const struct recipe with_adamw = {
    "adamw",
    {LANGUAGE_TRANSFORMER(.norm_place = SB_NORM_POST, .activation = SB_ACTIVATION_GELU,
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
    return sb_tensor_value(loss);
}

/* Each loss, before the step, is within this share of PyTorch's in float64. */
static void language_expect_losses(const sb_safetensors *file, const struct recipe *r,
                                   sb_dtype dtype, double share)
{
    sb_tensor *losses = KEPT(sb_safetensors_tensor(file, reference_name("losses", r->path).text));
    cr_assert(losses && losses->dtype == SB_F64 && sb_tensor_size(losses) == LANGUAGE_STEPS);
    const double *expected = test_data(losses);
    sb_vocabulary *vocabulary = vocabulary_of_letters();
    sb_parameters *weights = KEPT(sb_parameters_of(dtype, 1));
    sb_language_model *model = KEPT(sb_language_model_for(weights, vocabulary, &r->model));
    reference_read_weights(file, r->path, weights);
    sb_optimiser *optimiser = KEPT(r->new_optimiser(weights, &r->optimiser));
    const int steps = test_slow() ? LANGUAGE_STEPS / 10 : LANGUAGE_STEPS;
    for (int step = 0; step < steps; step++) {
        const double loss = step_on(file, step % LANGUAGE_BATCHES, model, optimiser);
        const double error = fabs(loss - expected[step]) / expected[step];
        cr_expect(error <= share, "%s: the loss of step %d is %.15g, not %.15g", r->path, step + 1,
                  loss, expected[step]);
    }
}

/* In float32 rounding grows from step to step, slowly at Adam's lower rate. */
static void follow(const sb_safetensors *file, const void *recipe, sb_dtype dtype)
{
    if (dtype == SB_F64)
        language_expect_losses(file, recipe, SB_F64, 1e-9);
    else if (recipe == &with_adam)
        language_expect_losses(file, recipe, SB_F32, 1e-5);
}

TEST(reference_language, losses_of_pre_norm_with_adam_follow_pytorch, WHOLE_MODELS)
{
    sb_safetensors *file = KEPT(reference_open("language"));
    reference_each(follow, file, &with_adam);
}

TEST(reference_language, losses_of_learned_positions_with_adamw_follow_pytorch, WHOLE_MODELS)
{
    sb_safetensors *file = KEPT(reference_open("language"));
    reference_each(follow, file, &with_adamw);
}
