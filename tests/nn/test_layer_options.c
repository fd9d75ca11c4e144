/* Options of single layers: sources and widths of keys and values, padding of embeddings, epsilon
   of norms. */
#include "autograd/gradcheck.h"
#include "tests/support/test.h"

enum { B = 2, LQ = 3, LK = 4, C = 6, H = 2, D = C / H, KEYS = 5, VALUES = 7 };

struct attention {
    sb_parameters *weights;
    sb_multi_head_attention layer;
    sb_tensor *x, *memory, *values;
};

static struct attention attention_new(int64_t key_heads)
{
    const sb_transformer_options options = {
        .width = C, .heads = H, .key_heads = key_heads, .key_width = KEYS, .value_width = VALUES};
    struct attention a = {.weights = KEPT(sb_parameters_of(SB_F64, 1))};
    MUST(sb_multi_head_attention_init(&a.layer, a.weights, "attention", &options, false));
    a.x = test_leaf(SB_F64, 1, SB_SHAPE(B, LQ, C));
    a.memory = test_leaf(SB_F64, 2, SB_SHAPE(B, LK, KEYS));
    a.values = test_leaf(SB_F64, 3, SB_SHAPE(B, LK, VALUES));
    return a;
}

static sb_tensor *attention_run(void *context, sb_tensor *const x[])
{
    (void)x;
    const struct attention *a = context;
    const sb_attending attending = {.values = a->values};
    return sb_multi_head_attention_forward(&a->layer, a->x, a->memory, &attending);
}

/* Head by head: softmax(q_h k_h' / sqrt D) v_h, joined and projected. */
TEST(layer_options, keys_and_values_have_sources_and_widths_of_their_own)
{
    for (int64_t heads = 1; heads <= H; heads++) {
        struct attention a = attention_new(heads);
        const sb_multi_head_attention *m = &a.layer;
        TAPE(SB_NO_RECORD);
        sb_tensor *y = attention_run(&a, NULL), *head[H];
        sb_tensor *q = sb_linear(a.x, m->query.weight, m->query.bias);
        sb_tensor *k = sb_linear(a.memory, m->key.weight, m->key.bias);
        sb_tensor *v = sb_linear(a.values, m->value.weight, m->value.bias);
        for (int64_t h = 0; h < H; h++) {
            const int64_t g = h / (H / heads);
            sb_tensor *qh = sb_slice(q, 2, h * D, D), *kh = sb_slice(k, 2, g * D, D);
            sb_tensor *weights = sb_softmax(sb_scale(sb_matmul_nt(qh, kh), 1 / sqrt((double)D)));
            head[h] = sb_matmul(weights, sb_slice(v, 2, g * D, D));
        }
        sb_tensor *joined = sb_concatenate(head, H, 2);
        sb_tensor *expected = sb_linear(joined, m->output.weight, m->output.bias);
        cr_expect(test_relative(y, expected) < 1e-14, "%s", sb_error());
    }
}

TEST(layer_options, separate_sources_have_the_right_gradient)
{
    too_slow(EMULATED_SANITIZED, "it takes differences for each element");
    struct attention a = attention_new(H);
    sb_tensor *in[16];
    int n = 0;
    for (int64_t i = 0; i < sb_parameters_count(a.weights); i++)
        in[n++] = sb_parameters_get(a.weights, i);
    in[n++] = a.x;
    in[n++] = a.memory;
    in[n++] = a.values;
    sb_gradcheck_result result;
    cr_expect(sb_gradcheck(attention_run, &a, in, n, NULL, &result), "%s", sb_error());
}

/* A decoder may read a memory of another width than its own. */
TEST(layer_options, cross_attention_reads_a_memory_of_its_width)
{
    const sb_transformer_options options = {.width = C, .heads = H, .key_width = KEYS};
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
    sb_decoder_layer layer;
    MUST(sb_decoder_layer_init(&layer, weights, "layer", &options, true));
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(B, LQ, C));
    sb_tensor *memory = test_leaf(SB_F64, 2, SB_SHAPE(B, LK, KEYS));
    const sb_attending all = {0};
    sb_tensor *y = sb_decoder_layer_forward(&layer, x, memory, &all, &all);
    cr_expect(y && sb_tensor_dim(y, 2) == C, "%s", sb_error());
}

TEST(layer_options, sources_that_do_not_fit_are_refused)
{
    struct attention a = attention_new(H);
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    cr_expect(!sb_multi_head_attention_forward(&a.layer, a.x, a.memory, NULL));
    EXPECT_ERROR("linear: x is (2, 4, 5)"); /* the memory is no source of these values */
    cr_expect(!sb_tape_end(&tape));
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_attending flat = {.values = sb_reshape(a.values, SB_SHAPE(B * LK, VALUES))};
    cr_expect(!sb_multi_head_attention_forward(&a.layer, a.x, a.memory, &flat));
    EXPECT_ERROR("multi_head_attention: values is (8, 7); it must be (batch, length, width)");
    cr_expect(!sb_tape_end(&tape));
    const sb_transformer_options negative = {.width = C, .heads = H, .key_width = -1};
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
    cr_expect(!sb_multi_head_attention_init(&a.layer, weights, "a", &negative, false));
    EXPECT_ERROR("multi_head_attention: key_width is -1, not in 1..");
}

TEST(layer_options, the_row_of_padding_starts_at_zero_and_stays)
{
    enum { V = 5, PADDING = 3 };
    const sb_transformer_options options = {.width = C, .padded = true, .padding_id = PADDING};
    const int32_t id[] = {1, PADDING, PADDING, 4};
    sb_parameters *weights = sb_parameters_of(SB_F64, 1);
    sb_embedding_layer layer;
    MUST(sb_embedding_layer_init(&layer, weights, "e", V, &options, NULL));
    for (int c = 0; c < C; c++)
        cr_expect(sb_tensor_get(layer.weight, PADDING * C + c) == 0);
    sb_tensor *ids = sb_tensor_from(SB_I32, SB_SHAPE(2, 2), id);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_embedding_layer_forward(&layer, ids, 0);
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    for (int c = 0; c < C; c++) {
        const sb_tensor *g = sb_tensor_grad(layer.weight);
        cr_expect(sb_tensor_get(g, PADDING * C + c) == 0 && sb_tensor_get(g, 4 * C + c) != 0);
    }
    sb_tape_end(&tape);
    sb_tensor_release(ids);
    sb_parameters_free(weights);
    const sb_transformer_options beyond = {.padded = true, .padding_id = V};
    weights = sb_parameters_of(SB_F64, 1);
    cr_expect(!sb_embedding_layer_init(&layer, weights, "e", V, &beyond, NULL));
    EXPECT_ERROR("embedding: padding_id is 5; it must be in 0..4");
    sb_parameters_free(weights);
}

TEST(layer_options, a_norm_may_have_an_epsilon_of_its_own)
{
    for (int kind = SB_NORM_KIND_LAYER; kind <= SB_NORM_KIND_RMS; kind++) {
        sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
        sb_norm_layer layer;
        cr_assert(sb_norm_layer_init(&layer, weights, "n", 2, (sb_norm_kind)kind));
        TAPE(SB_NO_RECORD);
        sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2), (double[]){-1, 1}));
        sb_tensor *usual = sb_norm_layer_forward(&layer, x);
        layer.epsilon = 3; /* a variance of 1, and of squares too: 1 / sqrt(1 + 3) */
        sb_tensor *half = sb_norm_layer_forward(&layer, x);
        cr_expect(fabs(sb_tensor_get(usual, 1) - 1) < 1e-5 && sb_tensor_get(half, 1) == 0.5);
    }
}
