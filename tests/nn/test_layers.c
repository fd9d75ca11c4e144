/* Layers: gradients, dropout and convolution. */
#include "tests/support/compare.h"
#include "tests/support/tiny.h"
#include <stdio.h>

/* Gradients of layers, and of a whole model, against central differences in float64. */

enum { C = 6, H = 2, B = 2, L = 4, MEMORY = 3 };

static const int32_t lengths[B] = {3, 2};

static sb_transformer_options sizes(void)
{
    return (sb_transformer_options){.width = C,
                                    .heads = H,
                                    .key_heads = H,
                                    .feed_forward = 5,
                                    .encoder_layers = 1,
                                    .decoder_layers = 1,
                                    .activation = SB_ACTIVATION_GELU,
                                    .positions_longest = L};
}

/* A layer of any kind, with the leaves that it reads in addition to its parameters. */
struct layer {
    sb_parameters *weights;
    sb_transformer_options options;
    sb_tensor *x, *memory, *ids, *lengths;
    sb_multi_head_attention attention;
    sb_encoder_layer encoder_layer;
    sb_decoder_layer decoder_layer;
    sb_feed_forward feed_forward;
    sb_embedding_layer embedding;
    sb_norm_layer norm;
    sb_linear_layer linear;
    sb_position_bias bias;
};

static struct layer layer_new(const sb_transformer_options *options)
{
    struct layer layer = {.weights = KEPT(sb_parameters_of(SB_F64, 1)), .options = *options};
    const int32_t ids[B * L] = {4, 5, 4, 0, 6, 2, 5, 3};
    layer.x = test_leaf(SB_F64, 1, SB_SHAPE(B, L, C));
    layer.memory = test_leaf(SB_F64, 2, SB_SHAPE(B, MEMORY, C));
    layer.ids = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(B, L), ids));
    layer.lengths = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(B), lengths));
    return layer;
}

/* In brief runs, keeps one in three of many inputs; layers begin with different ones. */
static int some_of(int n, sb_tensor **inputs)
{
    if (!test_brief() || n <= 12)
        return n;
    int kept = 0;
    for (int i = n % 3; i < n; i += 3)
        inputs[kept++] = inputs[i];
    return kept;
}

/* Checks f with respect to x, the memory and all parameters. */
static void expect_gradients(const char *name, sb_function f, struct layer *layer)
{
    sb_tensor **inputs = tiny_parameters(layer->weights);
    int n = (int)sb_parameters_count(layer->weights);
    for (int i = 0; i < n; i++) /* replaces gains of 1 and biases of 0, which hide mistakes */
        for (int64_t k = 0; k < sb_tensor_size(inputs[i]); k++)
            sb_tensor_set(inputs[i], k,
                          sb_tensor_get(inputs[i], k) + 0.3 * sin((double)(17 * i + 5 * k + 1)));
    inputs[n++] = layer->x;
    inputs[n++] = layer->memory;
    n = some_of(n, inputs);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    const sb_gradcheck_options options = {.random = &random};
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(f, layer, inputs, n, &options, &result), "%s: %s", name, sb_error());
    cr_expect(result.error <= 1e-6, "%s: %g", name, result.error);
}

static sb_tensor *run_linear(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    return sb_linear_layer_forward(&l->linear, l->x, SB_ACTIVATION_SILU);
}

static sb_tensor *run_embedding(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    return sb_embedding_layer_forward(&l->embedding, l->ids, 0);
}

static sb_tensor *run_norm(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    sb_tensor *sum, *h = sb_norm_layer_forward(&l->norm, l->x);
    h = sb_norm_layer_residual(&l->norm, l->x, h, 0.2, SB_SEQUENCE_SOURCE, &sum);
    return sb_multiply(h, sum);
}

static sb_tensor *run_feed_forward(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    return sb_feed_forward_forward(&l->feed_forward, l->x);
}

/* Self-attention, causal, then attention to a padded memory. */
static sb_tensor *run_attention(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    bool ok;
    sb_attending self = {.mask = sb_mask_causal(), .start = 2};
    self.bias = sb_position_bias_forward(&l->bias, L, L, &ok);
    MUST(ok);
    sb_tensor *y = sb_multi_head_attention_forward(&l->attention, l->x, l->x, &self);
    sb_attending cross = {.mask = sb_mask_lengths(l->lengths)};
    return sb_multi_head_attention_forward(&l->attention, y, l->memory, &cross);
}

static sb_tensor *run_encoder_layer(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    sb_attending self = {.mask = sb_mask_lengths(l->lengths)};
    return sb_encoder_layer_forward(&l->encoder_layer, l->x, &self);
}

static sb_tensor *run_decoder_layer(void *context, sb_tensor *const x[])
{
    (void)x;
    struct layer *l = context;
    sb_attending self = {.mask = sb_mask_causal()};
    sb_attending cross = {.mask = sb_mask_lengths(l->lengths)};
    return sb_decoder_layer_forward(&l->decoder_layer, l->x, l->memory, &self, &cross);
}

TEST(layers, linear_has_the_right_gradient)
{
    sb_transformer_options options = sizes();
    struct layer l = layer_new(&options);
    cr_assert(sb_linear_layer_init(&l.linear, l.weights, "linear", C, 5, true));
    expect_gradients("linear", run_linear, &l);
}

TEST(layers, embedding_has_the_right_gradient)
{
    for (int positions = SB_POSITIONS_SINUSOIDAL; positions <= SB_POSITIONS_LEARNED; positions++) {
        sb_transformer_options options = sizes();
        options.positions = (sb_positions)positions;
        struct layer l = layer_new(&options);
        cr_assert(sb_embedding_layer_init(&l.embedding, l.weights, "embedding", 7, &options, NULL));
        cr_expect(sb_parameters_count(l.weights) == 1 + positions);
        expect_gradients("embedding", run_embedding, &l);
    }
}

TEST(layers, norms_have_the_right_gradient)
{
    for (int kind = SB_NORM_KIND_LAYER; kind <= SB_NORM_KIND_RMS; kind++) {
        sb_transformer_options options = sizes();
        struct layer l = layer_new(&options);
        cr_assert(sb_norm_layer_init(&l.norm, l.weights, "norm", C, (sb_norm_kind)kind));
        expect_gradients("norm", run_norm, &l);
    }
}

TEST(layers, feed_forward_has_the_right_gradient, KNOWN_KERNELS)
{
    for (int gated = 0; gated < 2; gated++) {
        sb_transformer_options options = sizes();
        options.gated = gated;
        struct layer l = layer_new(&options);
        cr_assert(sb_feed_forward_init(&l.feed_forward, l.weights, "feed_forward", &options));
        expect_gradients("feed_forward", run_feed_forward, &l);
    }
}

TEST(layers, attention_has_the_right_gradient, DIFFERENCES)
{
    static const struct {
        sb_score score;
        int64_t key_heads;
        sb_positions positions;
        bool qk_norm;
    } kinds[] = {
        {SB_SCORE_SCALED, 2, SB_POSITIONS_NONE, false},
        {SB_SCORE_SCALED, 1, SB_POSITIONS_NONE, false},
        {SB_SCORE_BALANCED, 2, SB_POSITIONS_NONE, false},
        {SB_SCORE_COSINE, 2, SB_POSITIONS_NONE, false},
        {SB_SCORE_SCALED, 2, SB_POSITIONS_ALIBI, false},
        {SB_SCORE_SCALED, 2, SB_POSITIONS_RELATIVE, false},
        {SB_SCORE_SCALED, 1, SB_POSITIONS_ROTARY, false},
        {SB_SCORE_SCALED, 1, SB_POSITIONS_ROTARY, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i += test_slow() ? 3 : 1) {
        sb_transformer_options options = sizes();
        options.score = kinds[i].score;
        options.key_heads = kinds[i].key_heads;
        options.positions = kinds[i].positions;
        options.qk_norm = kinds[i].qk_norm;
        bool rotary = options.positions == SB_POSITIONS_ROTARY;
        if (rotary)
            options.heads = options.key_heads = 1; /* of an even size */
        struct layer l = layer_new(&options);
        cr_assert(
            sb_multi_head_attention_init(&l.attention, l.weights, "attention", &options, rotary) &&
            sb_position_bias_init(&l.bias, l.weights, "bias", &options));
        char name[32];
        snprintf(name, sizeof name, "attention %zu", i);
        expect_gradients(name, run_attention, &l);
    }
}

TEST(layers, encoder_and_decoder_layers_have_the_right_gradient, DIFFERENCES)
{
    for (int place = SB_NORM_PRE; place <= SB_NORM_SANDWICH; place++)
        for (int kind = SB_NORM_KIND_LAYER; kind <= SB_NORM_KIND_RMS; kind++) {
            if (test_slow() && kind != place % 2)
                continue;
            sb_transformer_options options = sizes();
            options.norm_place = (sb_norm_place)place;
            options.norm_kind = (sb_norm_kind)kind;
            struct layer l = layer_new(&options);
            /* lengths refer to the memory; the encoder has as many queries */
            l.x = test_leaf(SB_F64, 1, SB_SHAPE(B, MEMORY, C));
            cr_assert(sb_encoder_layer_init(&l.encoder_layer, l.weights, "encoder", &options));
            expect_gradients("encoder layer", run_encoder_layer, &l);
            l = layer_new(&options);
            cr_assert(
                sb_decoder_layer_init(&l.decoder_layer, l.weights, "decoder", &options, true));
            expect_gradients("decoder layer", run_decoder_layer, &l);
        }
}

static sb_tensor *normalise(const sb_norm_layer *norm, sb_tensor *x)
{
    return sb_layer_norm(x, norm->gain, norm->bias, 0);
}

/* Post-norm: a = norm(x + self(x)), y = norm(a + feed(a)); pre-norm: a = x + self(norm x),
   y = a + feed(norm a); sandwich: a = x + norm(self(norm x)), y = a + norm(feed(norm a)). */
TEST(layers, encoder_layers_follow_their_formulas)
{
    for (sb_norm_place place = SB_NORM_PRE; place <= SB_NORM_SANDWICH; place++) {
        const bool post = place == SB_NORM_POST, sandwich = place == SB_NORM_SANDWICH;
        sb_transformer_options options = sizes();
        options.norm_place = place;
        struct layer l = layer_new(&options);
        sb_encoder_layer *e = &l.encoder_layer;
        cr_assert(sb_encoder_layer_init(e, l.weights, "encoder", &options));
        tiny_draw(l.weights, 1, 0);
        TAPE(SB_NO_RECORD);
        sb_tensor *y = sb_encoder_layer_forward(e, l.x, NULL), *a = l.x;
        sb_tensor *h = post ? a : normalise(&e->self_norm, a);
        sb_tensor *branch = sb_multi_head_attention_forward(&e->self_attention, h, h, NULL);
        a = sb_add(a, sandwich ? normalise(&e->self_branch_norm, branch) : branch);
        a = post ? normalise(&e->self_norm, a) : a;
        h = post ? a : normalise(&e->feed_norm, a);
        branch = sb_feed_forward_forward(&e->feed_forward, h);
        a = sb_add(a, sandwich ? normalise(&e->feed_branch_norm, branch) : branch);
        a = post ? normalise(&e->feed_norm, a) : a;
        cr_expect(test_relative(y, a) < 1e-14, "%g", test_relative(y, a));
    }
}

/* Multi-head attention, head by head: softmax(q_h k_h' / sqrt D) v_h, joined and projected. */
TEST(layers, attention_follows_its_formula)
{
    sb_transformer_options options = sizes();
    struct layer l = layer_new(&options);
    sb_multi_head_attention *m = &l.attention;
    cr_assert(sb_multi_head_attention_init(m, l.weights, "attention", &options, false));
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_multi_head_attention_forward(m, l.x, l.memory, NULL), *head[H];
    sb_tensor *q = sb_linear(l.x, m->query.weight, m->query.bias);
    sb_tensor *k = sb_linear(l.memory, m->key.weight, m->key.bias);
    sb_tensor *v = sb_linear(l.memory, m->value.weight, m->value.bias);
    const int64_t D = C / H;
    for (int h = 0; h < H; h++) {
        sb_tensor *qh = sb_slice(q, 2, h * D, D), *kh = sb_slice(k, 2, h * D, D);
        sb_tensor *weights = sb_softmax(sb_scale(sb_matmul_nt(qh, kh), 1 / sqrt((double)D)));
        head[h] = sb_matmul(weights, sb_slice(v, 2, h * D, D));
    }
    sb_tensor *expected = sb_linear(sb_concatenate(head, H, 2), m->output.weight, m->output.bias);
    cr_expect(test_relative(y, expected) < 1e-14, "%g", test_relative(y, expected));
}

struct whole {
    struct tiny tiny;
    sb_batch *batch;
};

static sb_tensor *run_whole(void *context, sb_tensor *const x[])
{
    (void)x;
    struct whole *whole = context;
    return sb_seq2seq_loss(whole->tiny.model, whole->batch);
}

static void expect_whole(const char *name, const sb_seq2seq_options *options)
{
    struct whole whole = {.tiny = tiny_new(SB_F64, 1, options)};
    sb_parameters *weights = whole.tiny.weights;
    whole.batch = tiny_batch(whole.tiny.vocabulary, 4, 2, 4);
    sb_tensor **inputs = tiny_parameters(weights);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_gradcheck_options check = {.random = options->transformer.dropout > 0 ? &random : NULL};
    sb_gradcheck_result result;
    cr_expect(
        sb_gradcheck(run_whole, &whole, inputs, (int)sb_parameters_count(weights), &check, &result),
        "%s: %s: %s", name, sb_parameters_name(weights, result.input), sb_error());
}

TEST(layers, a_whole_model_has_the_right_gradient, DIFFERENCES)
{
    for (int place = test_slow(); place <= SB_NORM_POST; place++) {
        sb_seq2seq_options options = {.transformer = sizes()};
        options.transformer.norm_place = (sb_norm_place)place;
        options.transformer.width = 4;
        options.transformer.dropout = place == SB_NORM_PRE ? 0 : 0.2;
        options.tie_embeddings = options.share_embeddings = true;
        options.label_smoothing = 0.1;
        expect_whole(place ? "post-norm" : "pre-norm", &options);
    }
}

/* All variants of tiny models, which have thousands of parameters each. */
CPU_TEST(layers, all_whole_models_have_the_right_gradient)
{
    for (int v = 0; test_long() && tiny_variant(v); v++) {
        sb_seq2seq_options options = tiny_variant(v)->options;
        options.transformer.activation =
            options.transformer.activation ? options.transformer.activation : SB_ACTIVATION_GELU;
        expect_whole(tiny_variant(v)->name, &options);
    }
}

TEST(layers, null_and_wrong_ranks_are_refused)
{
    sb_transformer_options options = sizes();
    struct layer l = layer_new(&options);
    cr_assert(sb_multi_head_attention_init(&l.attention, l.weights, "attention", &options, false));
    REFUSED_ON_TAPE(SB_RECORD, "multi_head_attention: memory is NULL",
                    sb_multi_head_attention_forward(&l.attention, l.x, NULL, NULL));
    REFUSED_ON_TAPE(SB_RECORD,
                    "multi_head_attention: x is (2, 4); it must be (batch, length, width)",
                    sb_multi_head_attention_forward(&l.attention, l.ids, l.x, NULL));
}

/* ---- convolution ---- */

/* y_t = relu(W_0 x_{t-1} + W_1 x_t + b): causal, of a window of two. */
TEST(convolution, it_follows_its_formula)
{
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
    sb_convolution layer;
    const sb_unfold_options causal = {.left = 1};
    MUST(sb_convolution_init(&layer, weights, "c", 3, 4, 2, true, &causal));
    cr_expect(sb_parameters_count(weights) == 2);
    expect_shape(sb_parameters_find(weights, "c.weight"), SB_SHAPE(4, 6));
    cr_assert(sb_tensor_write(sb_parameters_find(weights, "c.bias"), (double[]){1, -1, 0.5, 2}));
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 2, SB_SHAPE(2, 5, 3));
    sb_tensor *y = sb_convolution_forward(&layer, x, SB_ACTIVATION_RELU);
    sb_tensor *w = KEPT(sb_tensor_retain(layer.linear.weight));
    sb_tensor *now = sb_linear(x, sb_slice(w, 1, 3, 3), layer.linear.bias);
    sb_tensor *before = sb_linear(sb_slice(x, 1, 0, 4), sb_slice(w, 1, 0, 3), NULL);
    sb_tensor *first = sb_relu(sb_slice(now, 1, 0, 1));
    sb_tensor *rest = sb_relu(sb_add(sb_slice(now, 1, 1, 4), before));
    cr_expect(test_relative(sb_slice(y, 1, 0, 1), first) < 1e-15, "%s", sb_error());
    cr_expect(test_relative(sb_slice(y, 1, 1, 4), rest) < 1e-15);
}

CPU_TEST(convolution, wrong_sizes_leave_the_set_as_it_was)
{
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F32, 1));
    sb_convolution layer;
    REFUSED("convolution: width is 0; it must be at least 1",
            sb_convolution_init(&layer, weights, "c", 3, 4, 0, true, NULL));
    REFUSED("convolution: in is 0; it must be at least 1",
            sb_convolution_init(&layer, weights, "c", 0, 4, 2, true, NULL));
    REFUSED("their product is too large",
            sb_convolution_init(&layer, weights, "c", INT64_MAX / 2, 4, 3, true, NULL));
    REFUSED("linear: out is 0", sb_convolution_init(&layer, weights, "c", 3, 0, 2, true, NULL));
    cr_expect(sb_parameters_count(weights) == 0 && !layer.linear.weight);
}

/* ---- Dropout of attention weights and of hidden units, apart from that of branches ---- */

enum { DROPOUTS_B = 2, DROPOUTS_L = 5, DROPOUTS_C = 8 };

/* The outputs of a layer with these options, with the random stream of training. */
static void run_layer(const sb_transformer_options *options,
                      double y[DROPOUTS_B * DROPOUTS_L * DROPOUTS_C])
{
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 3));
    sb_transformer_layer layer;
    MUST(sb_transformer_layer_init(&layer, set, "layer", options, false));
    sb_tensor *x = test_leaf(SB_F64, 5, SB_SHAPE(DROPOUTS_B, DROPOUTS_L, DROPOUTS_C));
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
    TAPE(SB_NO_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *out = sb_transformer_layer_forward(&layer, x, NULL, NULL, NULL);
    MUST(out && sb_tensor_read(out, y));
}

static bool same_outputs(sb_transformer_options a, sb_transformer_options b)
{
    double y[2][DROPOUTS_B * DROPOUTS_L * DROPOUTS_C];
    a.width = b.width = DROPOUTS_C;
    a.heads = b.heads = 2;
    run_layer(&a, y[0]);
    run_layer(&b, y[1]);
    return memcmp(y[0], y[1], sizeof y[0]) == 0;
}

TEST(dropouts, attention_weights_have_the_dropout_of_branches_unless_it_is_given)
{
    const sb_transformer_options plain = {.dropout = 0}, all = {.dropout = 0.3},
                                 same = {.dropout = 0.3, .attention_dropout = 0.3},
                                 none = {.dropout = 0.3, .attention_dropout = SB_ZERO},
                                 alone = {.attention_dropout = 0.3},
                                 zero = {.attention_dropout = SB_ZERO};
    cr_expect(same_outputs(all, same));
    cr_expect(!same_outputs(all, none) && !same_outputs(none, plain));
    cr_expect(!same_outputs(alone, plain) && !same_outputs(alone, all));
    cr_expect(same_outputs(zero, plain));
}

TEST(dropouts, hidden_units_are_dropped_apart_from_branches)
{
    const sb_transformer_options plain = {.dropout = 0}, hidden = {.feed_forward_dropout = 0.4},
                                 gated = {.gated = true},
                                 both = {.gated = true, .feed_forward_dropout = 0.4};
    cr_expect(!same_outputs(hidden, plain) && same_outputs(hidden, hidden));
    cr_expect(!same_outputs(both, gated));
}

/* With many hidden units the mean over draws is the output without dropout. */
TEST(dropouts, dropped_hidden_units_keep_their_mean, KNOWN_KERNELS)
{
    enum { DRAWS = 4000 };
    const sb_transformer_options o = {.width = 4, .feed_forward = 8, .feed_forward_dropout = 0.5};
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_feed_forward layer;
    MUST(sb_feed_forward_init(&layer, set, "ff", &o));
    sb_tensor *x = test_leaf(SB_F64, 2, SB_SHAPE(1, 1, 4));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    double mean[4] = {0}, y[4];
    for (int i = 0; i < DRAWS; i++) {
        TAPE(SB_NO_RECORD);
        sb_tape_random(&tape, &random);
        MUST(sb_tensor_read(sb_feed_forward_forward(&layer, x), y));
        for (int c = 0; c < 4; c++)
            mean[c] += y[c] / DRAWS;
    }
    sb_tape tape; /* without a random stream nothing is dropped */
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tape_random(&tape, NULL);
    MUST(sb_tensor_read(sb_feed_forward_forward(&layer, x), y));
    sb_tape_end(&tape);
    for (int c = 0; c < 4; c++)
        cr_expect(fabs(mean[c] - y[c]) < 0.08, "%g, expected about %g", mean[c], y[c]);
}

static sb_tensor *loss_of(void *layer, sb_tensor *const inputs[])
{
    sb_tensor *y = sb_feed_forward_forward(layer, inputs[0]);
    return sb_sum(sb_multiply(y, y), SB_ALL, false);
}

TEST(dropouts, the_gradient_passes_the_units_that_are_left, KNOWN_KERNELS)
{
    const sb_transformer_options o = {
        .width = DROPOUTS_C, .feed_forward = 12, .feed_forward_dropout = 0.4};
    sb_parameters *set = KEPT(sb_parameters_of(SB_F64, 1));
    sb_feed_forward layer;
    MUST(sb_feed_forward_init(&layer, set, "ff", &o));
    sb_tensor *x = test_leaf(SB_F64, 2, SB_SHAPE(DROPOUTS_B, DROPOUTS_L, DROPOUTS_C));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    const sb_gradcheck_options options = {.random = &random};
    cr_expect(sb_gradcheck(loss_of, &layer, &x, 1, &options, NULL), "%s", sb_error());
    cr_expect(!sb_gradcheck(loss_of, &layer, &x, 1, NULL, NULL));
    EXPECT_ERROR("gradcheck: dropout: the probability to drop is 0.4, but the tape records and has "
                 "no random stream; give it one");
}

CPU_TEST(dropouts, bad_probabilities_are_named)
{
    sb_transformer_options o = {.width = DROPOUTS_C, .attention_dropout = 1};
    REFUSED("attention_dropout is 1; it must be in [0, 1)", sb_transformer_complete(&o, &o));
    o = (sb_transformer_options){.width = DROPOUTS_C, .feed_forward_dropout = -0.1};
    REFUSED("feed_forward_dropout is -0.1; it must be in [0, 1)", sb_transformer_complete(&o, &o));
}
