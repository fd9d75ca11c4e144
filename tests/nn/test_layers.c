/* Gradients of layers, and of a whole model, against central differences in float64. */
#include "tests/support/tiny.h"
#include <stdio.h>

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

TEST(layers, feed_forward_has_the_right_gradient)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    for (int gated = 0; gated < 2; gated++) {
        sb_transformer_options options = sizes();
        options.gated = gated;
        struct layer l = layer_new(&options);
        cr_assert(sb_feed_forward_init(&l.feed_forward, l.weights, "feed_forward", &options));
        expect_gradients("feed_forward", run_feed_forward, &l);
    }
}

TEST(layers, attention_has_the_right_gradient)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
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

TEST(layers, encoder_and_decoder_layers_have_the_right_gradient)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
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

TEST(layers, a_whole_model_has_the_right_gradient)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
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
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_multi_head_attention_forward(&l.attention, l.x, NULL, NULL));
    EXPECT_ERROR("multi_head_attention: memory is NULL");
    sb_tape_end(&tape);
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_multi_head_attention_forward(&l.attention, l.ids, l.x, NULL));
    EXPECT_ERROR("multi_head_attention: x is (2, 4); it must be (batch, length, width)");
    sb_tape_end(&tape);
}
