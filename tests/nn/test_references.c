/* Layers and optimisers against PyTorch. */
#include "tests/support/reference.h"

/* Multi-head attention, encoder and decoder layers agree with PyTorch's, in value and in the
   gradients of all inputs and weights: see tests/golden/references/layers.py. */

struct layer {
    sb_multi_head_attention attention;
    sb_encoder_layer encoder;
    sb_decoder_layer decoder;
};

struct inputs {
    sb_tensor *x, *memory, *bias, *lengths, *memory_lengths; /* NULL if the case has none */
    bool causal;
};

struct kind {
    bool (*init)(struct layer *layer, sb_parameters *set, const sb_transformer_options *options);
    sb_tensor *(*forward)(const struct layer *layer, const struct inputs *in);
};

struct layer_case {
    const char *path;
    const struct kind *kind;
    sb_norm_place place;
    sb_activation activation;
    bool causal;
};

static sb_mask *mask_of(sb_tensor *lengths, bool causal)
{
    if (!lengths || !causal)
        return lengths ? sb_mask_lengths(lengths) : causal ? sb_mask_causal() : NULL;
    return sb_mask_and(sb_mask_lengths(lengths), sb_mask_causal());
}

static bool attention_init(struct layer *layer, sb_parameters *set,
                           const sb_transformer_options *options)
{
    return sb_multi_head_attention_init(&layer->attention, set, "", options, false);
}

static sb_tensor *attention_forward(const struct layer *layer, const struct inputs *in)
{
    const sb_attending attending = {.mask = mask_of(in->lengths, in->causal), .bias = in->bias};
    return sb_multi_head_attention_forward(&layer->attention, in->x,
                                           in->memory ? in->memory : in->x, &attending);
}

static bool encoder_init(struct layer *layer, sb_parameters *set,
                         const sb_transformer_options *options)
{
    return sb_encoder_layer_init(&layer->encoder, set, "", options);
}

static sb_tensor *encoder_forward(const struct layer *layer, const struct inputs *in)
{
    const sb_attending attending = {.mask = mask_of(in->lengths, in->causal)};
    return sb_encoder_layer_forward(&layer->encoder, in->x, &attending);
}

static bool decoder_init(struct layer *layer, sb_parameters *set,
                         const sb_transformer_options *options)
{
    return sb_decoder_layer_init(&layer->decoder, set, "", options, true);
}

static sb_tensor *decoder_forward(const struct layer *layer, const struct inputs *in)
{
    const sb_attending self = {.mask = mask_of(in->lengths, in->causal)};
    const sb_attending cross = {.mask = mask_of(in->memory_lengths, false)};
    return sb_decoder_layer_forward(&layer->decoder, in->x, in->memory, &self, &cross);
}

static const struct kind attention = {attention_init, attention_forward};
static const struct kind encoder = {encoder_init, encoder_forward};
static const struct kind decoder = {decoder_init, decoder_forward};

static void compare(const sb_safetensors *file, const void *context, sb_dtype dtype)
{
    const struct layer_case *c = context;
    const sb_transformer_options options = {.width = 8,
                                            .heads = 2,
                                            .feed_forward = 12,
                                            .norm_place = c->place,
                                            .activation = c->activation};
    sb_transformer_options complete;
    struct layer layer;
    sb_parameters *set = KEPT(sb_parameters_of(dtype, 1));
    MUST(sb_transformer_complete(&options, &complete) && c->kind->init(&layer, set, &complete));
    reference_read_weights(file, c->path, set);
    TAPE(SB_RECORD);
    const struct inputs in = {.x = reference_input(file, c->path, "x", dtype),
                              .memory = reference_input(file, c->path, "memory", dtype),
                              .bias = reference_input(file, c->path, "bias", dtype),
                              .lengths = reference_input(file, c->path, "lengths", dtype),
                              .memory_lengths =
                                  reference_input(file, c->path, "memory_lengths", dtype),
                              .causal = c->causal};
    sb_tensor *y = sb_keep(c->kind->forward(&layer, &in));
    sb_tensor *dy = reference_tensor(file, reference_name(c->path, "dy").text, dtype);
    cr_assert(sb_backward_from(y, dy), "%s: %s", c->path, sb_error());
    reference_expect_value(file, c->path, y);
    reference_expect_gradient(file, c->path, "x", in.x);
    reference_expect_gradient(file, c->path, "memory", in.memory);
    reference_expect_gradient(file, c->path, "bias", in.bias);
    reference_expect_weights(file, c->path, set);
}

static void compare_all(const char *group, int n, const struct layer_case cases[])
{
    sb_safetensors *file = KEPT(reference_open("layers"));
    reference_expect_count(file, group, n);
    for (int i = 0; i < n; i++)
        reference_each(compare, file, &cases[i]);
}

TEST(reference_layers, multi_head_attention_is_as_in_pytorch)
{
    static const struct layer_case cases[] = {
        {"multi_head_attention/self", &attention, 0, 0, false},
        {"multi_head_attention/cross_lengths", &attention, 0, 0, false},
        {"multi_head_attention/self_causal_lengths", &attention, 0, 0, true},
        {"multi_head_attention/bias", &attention, 0, 0, false},
    };
    compare_all("multi_head_attention", 4, cases);
}

TEST(reference_layers, encoder_layers_are_as_in_pytorch)
{
    static const struct layer_case cases[] = {
        {"encoder_layer/pre_gelu", &encoder, SB_NORM_PRE, SB_ACTIVATION_GELU, false},
        {"encoder_layer/pre_lengths", &encoder, SB_NORM_PRE, SB_ACTIVATION_RELU, false},
        {"encoder_layer/pre_causal_lengths", &encoder, SB_NORM_PRE, SB_ACTIVATION_RELU, true},
        {"encoder_layer/post_gelu", &encoder, SB_NORM_POST, SB_ACTIVATION_GELU, false},
        {"encoder_layer/post_lengths", &encoder, SB_NORM_POST, SB_ACTIVATION_RELU, false},
        {"encoder_layer/post_causal_lengths", &encoder, SB_NORM_POST, SB_ACTIVATION_RELU, true},
    };
    compare_all("encoder_layer", 6, cases);
}

TEST(reference_layers, decoder_layers_are_as_in_pytorch)
{
    static const struct layer_case cases[] = {
        {"decoder_layer/pre_gelu", &decoder, SB_NORM_PRE, SB_ACTIVATION_GELU, false},
        {"decoder_layer/pre_causal_lengths", &decoder, SB_NORM_PRE, SB_ACTIVATION_RELU, true},
        {"decoder_layer/post_gelu", &decoder, SB_NORM_POST, SB_ACTIVATION_GELU, false},
        {"decoder_layer/post_causal_lengths", &decoder, SB_NORM_POST, SB_ACTIVATION_RELU, true},
    };
    compare_all("decoder_layer", 4, cases);
}

/* Attention agrees with PyTorch's in value and gradients, by each algorithm:
   tests/golden/references/attention.py has the same cases, with inputs (batch, heads, length, size)
   unless said otherwise. */

static sb_attention_algorithm algorithm; /* of the cases below */

#define OPTIONS(...) (&(sb_attention_options){.algorithm = algorithm, __VA_ARGS__})
#define ATTEND(...)                                                                                \
    sb_attention(x[0], x[1], x[2], OPTIONS(.layout = SB_LAYOUT_HEADS_FIRST, __VA_ARGS__))

FUNCTION(plain, ATTEND(.mask = NULL))
FUNCTION(length_first, sb_attention(x[0], x[1], x[2], OPTIONS(.layout = SB_LAYOUT_LENGTH_FIRST)))
FUNCTION(scale, ATTEND(.scale = 0.3))
FUNCTION(temperature, ATTEND(.temperature = 1.7)) /* D is 4, so the scale 1/2 */
FUNCTION(causal, ATTEND(.mask = sb_mask_causal()))
FUNCTION(causal_last, ATTEND(.mask = sb_mask_causal_last()))
FUNCTION(window, ATTEND(.mask = sb_mask_window(1, 3)))
FUNCTION(lengths, ATTEND(.mask = sb_mask_lengths(x[3])))
FUNCTION(lengths_and_causal, ATTEND(.mask = sb_mask_and(sb_mask_lengths(x[3]), sb_mask_causal())))
FUNCTION(allowed, ATTEND(.mask = sb_mask_allow(x[3])))
FUNCTION(blocked, ATTEND(.mask = sb_mask_block(x[3])))
FUNCTION(bias, ATTEND(.bias = x[3]))
FUNCTION(bias_and_causal, ATTEND(.bias = x[3], .mask = sb_mask_causal()))
FUNCTION(log_temperature, ATTEND(.log_temperature = x[3]))
FUNCTION(balanced, ATTEND(.score = SB_SCORE_BALANCED))
FUNCTION(cosine, ATTEND(.score = SB_SCORE_COSINE))
FUNCTION(cosine_scale, ATTEND(.score = SB_SCORE_COSINE, .scale = 8))
FUNCTION(tiles, ATTEND(.scale = 0.8, .bias = x[3]))

/* The weights of x[0] .. x[2]. Tiles recompute them without a gradient, so that of stored weights
   is used. */
static sb_tensor *weights_of(sb_tensor *const x[], sb_layout layout)
{
    sb_tensor *found = NULL;
    sb_attention_options o = {.layout = layout, .mask = sb_mask_causal(), .weights = &found};
    if (!sb_attention(x[0], x[1], x[2], &o) || algorithm != SB_ATTENTION_TILED)
        return found;
    o.weights = NULL;
    o.algorithm = SB_ATTENTION_TILED;
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    sb_tensor *again = sb_attention_weights(y, 0, sb_tensor_dim(found, 2));
    return sb_add(found, sb_detach(sb_subtract(again, found)));
}

FUNCTION(weights, weights_of(x, SB_LAYOUT_HEADS_FIRST))

static void compare_attention(void)
{
    COMPARE("attention", "attention", CASE(plain), NAMED("one_head", length_first),
            CASE(length_first), NAMED("long", plain), CASE(scale), CASE(temperature),
            NAMED("groups", plain), NAMED("one_group", causal), CASE(causal), CASE(causal_last),
            CASE(window), CASE(lengths), CASE(lengths_and_causal), CASE(allowed), CASE(blocked),
            CASE(bias), NAMED("bias_broadcast", bias), CASE(bias_and_causal), CASE(log_temperature),
            NAMED("log_temperatures", log_temperature), CASE(balanced), CASE(cosine),
            CASE(cosine_scale), CASE(weights), NAMED("allowed_pairs", allowed),
            NAMED("allowed_heads", allowed), NAMED("bias_of_keys", bias),
            NAMED("causal_tall", causal), CASE(tiles), NAMED("tiles_causal", causal));
}

TEST(reference_attention, composed_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_COMPOSED;
    compare_attention();
}

TEST(reference_attention, tiled_attention_is_as_in_pytorch, KNOWN_KERNELS)
{
    algorithm = SB_ATTENTION_TILED;
    compare_attention();
}

/* torch.nn.MultiheadAttention: two heads of two, made of linear layers and sb_attention, since its
   further options are not among those of sb_multi_head_attention. Inputs are (batch, length,
   width). */
enum { B = 2, H = 2, D = 2, C = H * D };

static sb_tensor *heads(sb_tensor *x)
{
    return sb_reshape(x, SB_SHAPE(B, -1, H, D));
}

/* The projection of queries, keys or values (0, 1 or 2), which share a matrix and a bias. */
static sb_tensor *project(sb_tensor *x, sb_tensor *weight, sb_tensor *bias, int which)
{
    return sb_linear(x, sb_slice(weight, 0, which * C, C), sb_slice(bias, 0, which * C, C));
}

/* The heads joined again, and the last projection. */
static sb_tensor *output(sb_tensor *y, sb_tensor *weight, sb_tensor *bias)
{
    return sb_linear(sb_reshape(y, SB_SHAPE(B, -1, C)), weight, bias);
}

/* Attention of x to a memory, with the weight and bias of all projections, and of the last. */
static sb_tensor *multi_head(sb_tensor *x, sb_tensor *memory, sb_tensor *const w[4],
                             const sb_attention_options *options)
{
    sb_tensor *q = heads(project(x, w[0], w[1], 0)), *k = heads(project(memory, w[0], w[1], 1));
    sb_tensor *v = heads(project(memory, w[0], w[1], 2));
    return output(sb_attention(q, k, v, options), w[2], w[3]);
}

/* Pairs blocked for each head, and padding. */
FUNCTION_HEAD(masks)
{
    sb_mask *mask = sb_mask_and(sb_mask_block(x[2]), sb_mask_lengths(x[3]));
    return multi_head(x[0], x[1], x + 4, OPTIONS(.mask = mask));
}

/* The same as additive biases: one for each head's pairs, and one for keys (B, Lk). */
FUNCTION_HEAD(biases)
{
    sb_tensor *bias = sb_add(x[2], sb_reshape(x[3], SB_SHAPE(B, 1, 1, -1)));
    return multi_head(x[0], x[1], x + 4, OPTIONS(.bias = bias));
}

/* Queries, keys and values of different sizes, projections without bias. */
FUNCTION_HEAD(sizes)
{
    sb_tensor *q = heads(sb_linear(x[0], x[3], NULL)), *k = heads(sb_linear(x[1], x[4], NULL));
    sb_tensor *v = heads(sb_linear(x[2], x[5], NULL));
    return output(sb_attention(q, k, v, OPTIONS(.mask = NULL)), x[6], NULL);
}

/* A learned row, the same in each sequence, and a row of zeros follow the keys (or values). */
static sb_tensor *with_added_rows(sb_tensor *x, sb_tensor *row)
{
    row = sb_expand(row, SB_SHAPE(B, 1, C));
    return sb_concatenate((sb_tensor *[]){x, row, sb_scale(row, 0)}, 3, 1);
}

FUNCTION_HEAD(added_keys)
{
    sb_tensor *k = with_added_rows(project(x[1], x[2], x[3], 1), x[4]);
    sb_tensor *v = with_added_rows(project(x[1], x[2], x[3], 2), x[5]);
    sb_tensor *q = heads(project(x[0], x[2], x[3], 0));
    return output(sb_attention(q, heads(k), heads(v), OPTIONS(.mask = NULL)), x[6], x[7]);
}

/* The mean of the heads' weights; they do not depend on the values. */
FUNCTION_HEAD(average_weights)
{
    sb_tensor *q = heads(project(x[0], x[1], x[2], 0)), *k = heads(project(x[0], x[1], x[2], 1));
    return sb_mean(weights_of((sb_tensor *[]){q, k, k}, SB_LAYOUT_LENGTH_FIRST), 1, false);
}

static void compare_multi_head(void)
{
    COMPARE("attention", "multi_head", CASE(masks), CASE(biases), CASE(sizes), CASE(added_keys),
            CASE(average_weights));
}

TEST(reference_attention, composed_multi_head_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_COMPOSED;
    compare_multi_head();
}

TEST(reference_attention, tiled_multi_head_attention_is_as_in_pytorch)
{
    algorithm = SB_ATTENTION_TILED;
    compare_multi_head();
}

/* Losses and their gradients agree with PyTorch's: see losses in
   tests/golden/references/operations.py. */

/* "probabilities_sum_smoothed_weighted" and the like: ids and probabilities differ only in x[1]. */
#define LOSS(...) sb_cross_entropy(x[0], x[1], &(sb_cross_entropy_options){__VA_ARGS__})

FUNCTION(mean, sb_cross_entropy(x[0], x[1], NULL))
FUNCTION(mean_smoothed, LOSS(.label_smoothing = 0.1))
FUNCTION(mean_weighted, LOSS(.class_weight = x[2]))
FUNCTION(mean_smoothed_weighted, LOSS(.class_weight = x[2], .label_smoothing = 0.3))
FUNCTION(sum, LOSS(.reduction = SB_REDUCE_SUM))
FUNCTION(sum_smoothed, LOSS(.reduction = SB_REDUCE_SUM, .label_smoothing = 0.1))
FUNCTION(sum_weighted, LOSS(.reduction = SB_REDUCE_SUM, .class_weight = x[2]))
FUNCTION(sum_smoothed_weighted,
         LOSS(.reduction = SB_REDUCE_SUM, .class_weight = x[2], .label_smoothing = 0.3))
FUNCTION(none, LOSS(.reduction = SB_REDUCE_NONE))
FUNCTION(none_smoothed, LOSS(.reduction = SB_REDUCE_NONE, .label_smoothing = 0.1))
FUNCTION(none_weighted, LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[2]))
FUNCTION(none_smoothed_weighted,
         LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[2], .label_smoothing = 0.3))

#define LINEAR_LOSS(...)                                                                           \
    sb_linear_cross_entropy(x[0], x[1], x[2], x[3], &(sb_cross_entropy_options){__VA_ARGS__})

FUNCTION(linear, sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL))
FUNCTION(linear_sum_smoothed, LINEAR_LOSS(.reduction = SB_REDUCE_SUM, .label_smoothing = 0.1))
FUNCTION(linear_none_weighted, LINEAR_LOSS(.reduction = SB_REDUCE_NONE, .class_weight = x[4]))
FUNCTION(linear_smoothed_weighted, LINEAR_LOSS(.label_smoothing = 0.1, .class_weight = x[4]))
FUNCTION(squared_mean, sb_mean_squared_error(x[0], x[1], SB_REDUCE_MEAN))
FUNCTION(squared_sum, sb_mean_squared_error(x[0], x[1], SB_REDUCE_SUM))
FUNCTION(squared_none, sb_mean_squared_error(x[0], x[1], SB_REDUCE_NONE))

#define BOTH(loss)                                                                                 \
    {"ids_" #loss, loss},                                                                          \
    {                                                                                              \
        "probabilities_" #loss, loss                                                               \
    }

TEST(reference_losses, losses_are_as_in_pytorch)
{
    COMPARE("operations", "losses", BOTH(mean), BOTH(mean_smoothed), BOTH(mean_weighted),
            BOTH(mean_smoothed_weighted), BOTH(sum), BOTH(sum_smoothed), BOTH(sum_weighted),
            BOTH(sum_smoothed_weighted), BOTH(none), BOTH(none_smoothed), BOTH(none_weighted),
            BOTH(none_smoothed_weighted), CASE(linear), CASE(linear_sum_smoothed),
            CASE(linear_none_weighted), CASE(linear_smoothed_weighted), CASE(squared_mean),
            CASE(squared_sum), CASE(squared_none));
}

/* Steps of all optimisers with given gradients agree with PyTorch's: see
   tests/golden/references/optimisers.py. */

enum { STEPS = 8, PARAMETERS = 2 };

static const char *const names[PARAMETERS] = {"w", "v"};

struct optimiser_case {
    const char *path;
    sb_optimiser *(*new_optimiser)(sb_parameters *set, const sb_optimiser_options *options);
    sb_optimiser_options options;
};

static sb_parameters *read_start(const sb_safetensors *file, sb_dtype dtype)
{
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    sb_parameters *set = sb_parameters_of(dtype, 1);
    MUST(sb_parameters_add(set, "w", SB_SHAPE(3, 4), zero) &&
         sb_parameters_add(set, "v", SB_SHAPE(5), zero));
    reference_read_weights(file, "start", set);
    return KEPT(set);
}

/* Leaves each parameter with the gradient that the file has for the step: that of the sum of w g.
 */
static void set_gradients(const sb_safetensors *file, sb_parameters *set, int step)
{
    for (int i = 0; i < PARAMETERS; i++) {
        TAPE(SB_RECORD);
        sb_tensor *w = sb_parameters_find(set, names[i]);
        sb_tensor *g = reference_tensor(file, reference_name("gradients", names[i]).text, w->dtype);
        g = sb_reshape(sb_slice(g, 0, step, 1), w->rank, w->dim);
        MUST(sb_backward_from(w, g));
    }
}

static void optimisers_compare(const sb_safetensors *file, const void *context, sb_dtype dtype)
{
    const struct optimiser_case *c = context;
    sb_parameters *set = read_start(file, dtype);
    sb_optimiser *optimiser = KEPT(c->new_optimiser(set, &c->options));
    sb_tensor *after[PARAMETERS][STEPS];
    TAPE(SB_NO_RECORD);
    for (int step = 0; step < STEPS; step++) {
        set_gradients(file, set, step);
        MUST(sb_optimiser_step(optimiser));
        for (int i = 0; i < PARAMETERS; i++)
            after[i][step] = sb_scale(sb_parameters_find(set, names[i]), 1);
    }
    for (int i = 0; i < PARAMETERS; i++)
        reference_expect(file, reference_name(c->path, names[i]).text, sb_stack(after[i], STEPS, 0),
                         0);
}

static void optimisers_compare_all(int n, const struct optimiser_case cases[])
{
    sb_safetensors *file = KEPT(reference_open("optimisers"));
    for (int i = 0; i < n; i++)
        reference_each(optimisers_compare, file, &cases[i]);
}

#define ADAM(rate, b1, b2, e) .learning_rate = rate, .beta1 = b1, .beta2 = b2, .epsilon = e

TEST(reference_optimisers, sgd_steps_are_as_in_pytorch)
{
    optimisers_compare_all(
        6, (const struct optimiser_case[]){
               {"optimiser/sgd", sb_sgd_new, {.learning_rate = 0.1}},
               {"optimiser/sgd_decay", sb_sgd_new, {.learning_rate = 0.1, .weight_decay = 0.2}},
               {"optimiser/momentum", sb_sgd_new, {.learning_rate = 0.1, .momentum = 0.9}},
               {"optimiser/momentum_decay",
                sb_sgd_new,
                {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.2}},
               {"optimiser/nesterov",
                sb_sgd_new,
                {.learning_rate = 0.1, .momentum = 0.8, .nesterov = true}},
               {"optimiser/nesterov_decay_clip",
                sb_sgd_new,
                {.learning_rate = 0.1,
                 .momentum = 0.8,
                 .nesterov = true,
                 .weight_decay = 0.2,
                 .clip = 1.5}}});
}

TEST(reference_optimisers, adam_steps_are_as_in_pytorch)
{
    optimisers_compare_all(
        4, (const struct optimiser_case[]){
               {"optimiser/adam", sb_adam_new, {ADAM(0.01, 0.9, 0.999, 1e-8)}},
               {"optimiser/adam_usual", sb_adam_new, {.clip = 0}},
               {"optimiser/adam_decay",
                sb_adam_new,
                {ADAM(0.01, 0.8, 0.95, 1e-3), .weight_decay = 0.2}},
               {"optimiser/adam_clip", sb_adam_new, {ADAM(0.01, 0.9, 0.98, 0.1), .clip = 1.5}}});
}

TEST(reference_optimisers, adamw_steps_are_as_in_pytorch)
{
    optimisers_compare_all(
        2,
        (const struct optimiser_case[]){
            {"optimiser/adamw",
             sb_adamw_new,
             {ADAM(0.01, 0.9, 0.999, 1e-8), .weight_decay = 0.2, .decay_all = true}},
            {"optimiser/adamw_clip",
             sb_adamw_new,
             {ADAM(0.01, 0.9, 0.98, 0.1), .weight_decay = 0.2, .decay_all = true, .clip = 2.5}}});
}

/* ---- groups ---- */

enum { GROUP_STEPS = 50 };

static sb_parameters *read_groups(const sb_safetensors *file)
{
    static const struct {
        const char *name;
        int rank;
        int64_t dim[2];
        sb_group group;
    } each[] = {{"norm.gain", 1, {5}, {.rate = 0}},
                {"encoder.weight", 2, {4, 3}, {.rate = 0.1}},
                {"encoder.bias", 1, {4}, {.rate = 0.1}},
                {"late", 2, {2, 2}, {.decay = 0.5}},
                {"head.weight", 2, {3, 4}, {.rate = 2, .decay = 0.1}}};
    sb_parameters *set = sb_parameters_of(SB_F64, 1);
    for (int i = 0; i < 5; i++)
        MUST(sb_parameters_add(set, each[i].name, each[i].rank, each[i].dim,
                               (sb_initial){SB_INITIAL_CONSTANT, 0}) &&
             sb_parameters_group(set, each[i].name, &each[i].group));
    reference_read_weights(file, "groups.start", set);
    return KEPT(set);
}

/* "late" has a gradient at every third step alone. */
static void set_group_gradients(const sb_safetensors *file, sb_parameters *set, int step)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const char *name = sb_parameters_name(set, i);
        if (strcmp(name, "late") == 0 && step % 3 != 0)
            continue;
        TAPE(SB_RECORD);
        sb_tensor *w = sb_parameters_get(set, i);
        sb_tensor *g =
            reference_tensor(file, reference_name("groups.gradients", name).text, SB_F64);
        g = sb_reshape(sb_slice(g, 0, step, 1), w->rank, w->dim);
        MUST(sb_backward_from(w, g));
    }
}

/* AdamW spares norms and biases without being told to, which the reference's groups spell out. */
TEST(reference_optimisers, fifty_steps_with_groups_are_as_in_pytorch)
{
    sb_safetensors *file = KEPT(reference_open("optimisers"));
    sb_parameters *set = read_groups(file);
    const sb_optimiser_options o = {ADAM(0.01, 0.9, 0.98, 1e-8), .weight_decay = 0.2};
    sb_optimiser *adamw = KEPT(sb_adamw_new(set, &o));
    for (int step = 0; step < GROUP_STEPS; step++) {
        set_group_gradients(file, set, step);
        cr_assert(step != GROUP_STEPS / 2 || sb_optimiser_set_rate(adamw, 0.01 / 4));
        MUST(sb_optimiser_step(adamw));
    }
    TAPE(SB_NO_RECORD);
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        const char *name = sb_parameters_name(set, i);
        const sb_tensor *after =
            reference_tensor(file, reference_name("groups.after", name).text, SB_F64);
        const double apart = test_relative(sb_parameters_get(set, i), after);
        cr_expect(apart < 1e-9, "%s differs by %g", name, apart);
    }
}
