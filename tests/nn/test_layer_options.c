/* Options of layers: their defaults, and the initial values of weights. */
#include "tests/support/tiny.h"
#include <stdio.h>

/* Options of single layers: sources and widths of keys and values, padding of embeddings, epsilon
   of norms. */

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

TEST(layer_options, separate_sources_have_the_right_gradient, DIFFERENCES)
{
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
    /* the memory is no source of these values */
    REFUSED_ON_TAPE(SB_NO_RECORD, "linear: x is (2, 4, 5)",
                    sb_multi_head_attention_forward(&a.layer, a.x, a.memory, NULL));
    const sb_transformer_options negative = {.width = C, .heads = H, .key_width = -1};
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
    REFUSED("multi_head_attention: key_width is -1, not in 1..",
            sb_multi_head_attention_init(&a.layer, weights, "a", &negative, false));
    a = attention_new(H);
    FAILED_TAPE(SB_NO_RECORD);
    const sb_attending flat = {.values = sb_reshape(a.values, SB_SHAPE(B * LK, VALUES))};
    REFUSED("multi_head_attention: values is (8, 7); it must be (batch, length, width)",
            sb_multi_head_attention_forward(&a.layer, a.x, a.memory, &flat));
}

TEST(layer_options, the_row_of_padding_starts_at_zero_and_stays)
{
    enum { V = 5, PADDING = 3 };
    const sb_transformer_options options = {.width = C, .padded = true, .padding_id = PADDING};
    const int32_t id[] = {1, PADDING, PADDING, 4};
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F64, 1));
    sb_embedding_layer layer;
    MUST(sb_embedding_layer_init(&layer, weights, "e", V, &options, NULL));
    for (int c = 0; c < C; c++)
        cr_expect(sb_tensor_get(layer.weight, PADDING * C + c) == 0);
    sb_tensor *ids = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(2, 2), id));
    const sb_transformer_options beyond = {.padded = true, .padding_id = V};
    REFUSED("embedding: padding_id is 5; it must be in 0..4",
            sb_embedding_layer_init(&(sb_embedding_layer){0}, weights, "f", V, &beyond, NULL));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_embedding_layer_forward(&layer, ids, 0);
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    for (int c = 0; c < C; c++) {
        const sb_tensor *g = sb_tensor_grad(layer.weight);
        cr_expect(sb_tensor_get(g, PADDING * C + c) == 0 && sb_tensor_get(g, 4 * C + c) != 0);
    }
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

/* ---- Zeros in the options of a layer stand for the documented defaults ---- */

TEST(layer_defaults, heads_and_feed_forward_have_their_documented_defaults)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 64};
    sb_encoder_layer l;
    MUST(sb_encoder_layer_init(&l, set, "l", &o));
    cr_expect(l.self_attention.heads == 4 && l.self_attention.key_heads == 4);
    cr_expect(l.self_attention.size == 16 && l.self_attention.temperature == 1);
    cr_expect(sb_tensor_dim(l.feed_forward.up.weight, 0) == 4 * 64);
    sb_decoder_layer d;
    MUST(sb_decoder_layer_init(&d, set, "d", &o, true));
    cr_expect(d.self_attention.heads == 4 && d.cross_attention.heads == 4);
}

TEST(layer_defaults, the_default_activation_is_relu)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 8, .heads = 2, .key_heads = 2, .feed_forward = 16};
    sb_encoder_layer l;
    sb_feed_forward f;
    cr_assert(sb_encoder_layer_init(&l, set, "l", &o) && sb_feed_forward_init(&f, set, "f", &o));
    cr_expect(l.feed_forward.activation == SB_ACTIVATION_RELU &&
              f.activation == SB_ACTIVATION_RELU);
}

TEST(layer_defaults, default_sizes_give_no_empty_weight)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 8, .heads = 2};
    sb_encoder_layer l;
    MUST(sb_encoder_layer_init(&l, set, "l", &o));
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        cr_expect(sb_tensor_size(sb_parameters_get(set, i)) > 0, "%s", sb_parameters_name(set, i));
}

TEST(layer_defaults, an_embedding_of_zeros_has_width_128_and_512_learned_positions)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options zero = {0}, learned = {.positions = SB_POSITIONS_LEARNED};
    sb_embedding_layer l;
    MUST(sb_embedding_layer_init(&l, set, "l", 5, &zero, NULL));
    cr_expect(l.C == 128 && sb_tensor_dim(l.weight, 0) == 5 && sb_tensor_dim(l.weight, 1) == 128);
    MUST(sb_embedding_layer_init(&l, set, "p", 5, &learned, NULL));
    cr_expect(sb_tensor_dim(l.position, 0) == 512 && sb_tensor_dim(l.position, 1) == 128);
}

TEST(layer_defaults, a_position_bias_of_zeros_has_4_heads)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.positions = SB_POSITIONS_RELATIVE};
    sb_position_bias bias;
    MUST(sb_position_bias_init(&bias, set, "l", &o));
    cr_expect(bias.heads == 4 && sb_tensor_dim(bias.table, 0) == 4);
}

/* An embedding does not use the number of heads, and attention no sinusoids. */
TEST(layer_defaults, options_that_a_layer_does_not_use_are_not_checked)
{
    const sb_transformer_options six = {.width = 6}, nine = {.width = 9, .heads = 3};
    const sb_transformer_options three = {.heads = 3, .positions = SB_POSITIONS_RELATIVE};
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_embedding_layer embedding;
    sb_feed_forward feed_forward;
    sb_multi_head_attention attention;
    sb_encoder_layer encoder;
    sb_position_bias bias;
    cr_expect(sb_embedding_layer_init(&embedding, set, "a", 5, &six, NULL), "%s", sb_error());
    cr_expect(sb_feed_forward_init(&feed_forward, set, "b", &six), "%s", sb_error());
    cr_expect(sb_multi_head_attention_init(&attention, set, "c", &nine, false), "%s", sb_error());
    cr_expect(sb_encoder_layer_init(&encoder, set, "d", &nine), "%s", sb_error());
    cr_expect(sb_position_bias_init(&bias, set, "e", &three), "%s", sb_error());
}

/* Defaults are completed by the layer itself, and by an encoder for its layers. */
TEST(layer_defaults, a_layer_has_the_same_initial_weights_alone_as_in_an_encoder)
{
    const sb_transformer_options o = {.width = 8, .heads = 2, .encoder_layers = 1};
    sb_parameters *alone = KEPT(sb_parameters_new(1)), *stack = KEPT(sb_parameters_new(1));
    sb_embedding_layer embedding;
    sb_encoder_layer l;
    sb_encoder *e = KEPT(sb_encoder_new(stack, "e", 5, &o));
    cr_assert(e && sb_embedding_layer_init(&embedding, alone, "e.embedding", 5, &o, NULL) &&
              sb_encoder_layer_init(&l, alone, "e.layers.0", &o));
    for (int64_t i = 0; i < sb_parameters_count(alone); i++)
        cr_expect(test_same_bits(sb_parameters_get(alone, i),
                                 sb_parameters_find(stack, sb_parameters_name(alone, i))));
}

/* ---- Inits of layers: defaults for zeros, and failures for invalid options ---- */

/* A layer of any kind. */
union layer {
    sb_linear_layer linear;
    sb_norm_layer norm;
    sb_embedding_layer embedding;
    sb_feed_forward feed_forward;
    sb_position_bias bias;
    sb_multi_head_attention attention;
    sb_additive_attention additive;
    sb_multiplicative_attention multiplicative;
    sb_cosine_attention cosine;
    sb_encoder_layer encoder;
    sb_decoder_layer decoder;
    unsigned char bytes[1];
};

typedef bool make(union layer *l, sb_parameters *set, const char *name,
                  const sb_transformer_options *o);

/* INIT(norm, ...) defines a function of that type, which calls an init of `layer`. */
#define INIT(function, ...)                                                                        \
    static bool function(union layer *l, sb_parameters *set, const char *name,                     \
                         const sb_transformer_options *o)                                          \
    {                                                                                              \
        const int64_t width = o ? o->width : 4;                                                    \
        void *layer = l;                                                                           \
        (void)width;                                                                               \
        return __VA_ARGS__;                                                                        \
    }
INIT(linear, sb_linear_layer_init(layer, set, name, 3, width, true))
INIT(linear_cut, sb_linear_layer_init_cut(layer, set, name, width, 3, true, (sb_cut){NULL, 0}))
INIT(norm, sb_norm_layer_init(layer, set, name, width, SB_NORM_KIND_LAYER))
INIT(embedding, sb_embedding_layer_init(layer, set, name, 5, o, NULL))
INIT(feed_forward, sb_feed_forward_init(layer, set, name, o))
INIT(position_bias, sb_position_bias_init(layer, set, name, o))
INIT(attention, sb_multi_head_attention_init(layer, set, name, o, false))
INIT(additive, sb_additive_attention_init(layer, set, name, 2, width, 3, true, 0))
INIT(multiplicative, sb_multiplicative_attention_init(layer, set, name, 2, width, 0))
INIT(cosine, sb_cosine_attention_init(layer, set, name, 0, 0))
INIT(encoder, sb_encoder_layer_init(layer, set, name, o))
INIT(decoder, sb_decoder_layer_init(layer, set, name, o, true))

static const struct kind {
    const char *name; /* as messages have it */
    make *init;
    size_t size;
    int64_t parameters; /* with all options 0 */
} kinds[] = {
    {"linear", linear, sizeof(sb_linear_layer), 2},
    {"linear", linear_cut, sizeof(sb_linear_layer), 2},
    {"norm", norm, sizeof(sb_norm_layer), 2},
    {"embedding", embedding, sizeof(sb_embedding_layer), 1},
    {"feed_forward", feed_forward, sizeof(sb_feed_forward), 4},
    {"position_bias", position_bias, sizeof(sb_position_bias), 0},
    {"multi_head_attention", attention, sizeof(sb_multi_head_attention), 8},
    {"additive_attention", additive, sizeof(sb_additive_attention), 4},
    {"multiplicative_attention", multiplicative, sizeof(sb_multiplicative_attention), 1},
    {"cosine_attention", cosine, sizeof(sb_cosine_attention), 1},
    {"encoder_layer", encoder, sizeof(sb_encoder_layer), 16},
    {"decoder_layer", decoder, sizeof(sb_decoder_layer), 26},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool all_zero(const union layer *l, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (l->bytes[i])
            return false;
    return true;
}

/* The init fails with this message; the layer stays zero, and the set has none of its
   parameters. */
static void expect_refused(const struct kind *kind, const sb_transformer_options *o,
                           const char *message)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    union layer l;
    memset(&l, 0x5a, sizeof l);
    cr_expect(!kind->init(&l, set, "l", o), "%s: not refused: %s", kind->name, message);
    cr_expect_str_eq(sb_error(), message);
    cr_expect(all_zero(&l, kind->size), "%s: not zero", kind->name);
    cr_expect(sb_parameters_count(set) == 0, "%s: %lld parameters are left", kind->name,
              (long long)sb_parameters_count(set));
}

static const struct kind *kind_of(make *init)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].init == init)
            return &kinds[i];
    return NULL;
}

/* ---- NULL ---- */

CPU_TEST(layer_init, a_null_layer_set_or_name_is_refused)
{
    static const char *const names[] = {"layer", "set", "name"};
    const sb_transformer_options o = {.width = 4, .heads = 2};
    for (int i = 0; i < KINDS; i++)
        for (int null = 0; null < 3; null++) {
            sb_parameters *set = KEPT(sb_parameters_new(1));
            union layer l;
            memset(&l, 0x5a, sizeof l);
            cr_expect(!kinds[i].init(null == 0 ? NULL : &l, null == 1 ? NULL : set,
                                     null == 2 ? NULL : "l", &o));
            char message[64];
            snprintf(message, sizeof message, "%s: %s is NULL", kinds[i].name, names[null]);
            cr_expect_str_eq(sb_error(), message);
            cr_expect(null == 0 || all_zero(&l, kinds[i].size), "%s: not zero", message);
            cr_expect(sb_parameters_count(set) == 0);
        }
}

TEST(layer_init, null_options_are_all_defaults)
{
    for (int i = 0; i < KINDS; i++) {
        sb_parameters *set = KEPT(sb_parameters_new(1));
        union layer l;
        cr_expect(kinds[i].init(&l, set, "l", NULL), "%s: %s", kinds[i].name, sb_error());
        cr_expect(sb_parameters_count(set) == kinds[i].parameters, "%s: %lld", kinds[i].name,
                  (long long)sb_parameters_count(set));
    }
}

CPU_TEST(layer_init, completion_into_null_is_refused)
{
    REFUSED("transformer: complete is NULL", sb_transformer_complete(NULL, NULL));
}

/* ---- invalid options ---- */

CPU_TEST(layer_init, heads_that_do_not_divide_the_width_are_refused)
{
    const sb_transformer_options o = {.width = 8, .heads = 3}, six = {.width = 6};
    expect_refused(kind_of(encoder), &o,
                   "encoder_layer: width 8 is not a multiple of 3 heads; choose heads that divide "
                   "the width (4 by default), or give a head_size");
    expect_refused(kind_of(decoder), &o,
                   "decoder_layer: width 8 is not a multiple of 3 heads; choose heads that divide "
                   "the width (4 by default), or give a head_size");
    expect_refused(kind_of(attention), &six,
                   "multi_head_attention: width 6 is not a multiple of 4 heads; choose heads that "
                   "divide the width (4 by default), or give a head_size");
    const sb_transformer_options keys = {.width = 8, .heads = 4, .key_heads = 3};
    expect_refused(kind_of(attention), &keys,
                   "multi_head_attention: 4 heads are not a multiple of 3 key heads; choose "
                   "key_heads that divide the heads (as many by default)");
}

CPU_TEST(layer_init, sizes_out_of_range_are_refused)
{
    const sb_transformer_options width = {.width = -1}, heads = {.heads = -2},
                                 hidden = {.feed_forward = -3}, longest = {.positions_longest = -4},
                                 huge = {.width = INT64_MAX};
    expect_refused(kind_of(linear), &width, "linear: out is -1; it must be at least 1");
    expect_refused(kind_of(linear_cut), &width, "linear: in is -1; it must be at least 1");
    expect_refused(kind_of(linear), &(sb_transformer_options){0},
                   "linear: out is 0; it must be at least 1");
    expect_refused(kind_of(norm), &width, "norm: C is -1; it must be at least 1");
    expect_refused(kind_of(embedding), &longest,
                   "embedding: positions_longest is -4, not in 1..16777216; 0 gives the default");
    expect_refused(kind_of(position_bias), &heads,
                   "position_bias: heads is -2, not in 1..65536; 0 gives the default");
    expect_refused(kind_of(feed_forward), &hidden,
                   "feed_forward: feed_forward is -3, not in 1..16777216; 0 gives the default");
    expect_refused(kind_of(additive), &width,
                   "additive_attention: key_size is -1; it must be at least 1");
    expect_refused(kind_of(multiplicative), &width,
                   "multiplicative_attention: key_size is -1; it must be at least 1");
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].size >= sizeof(sb_multi_head_attention)) {
            char message[128];
            snprintf(message, sizeof message,
                     "%s: width is 9223372036854775807, not in 1..1048576; 0 gives the default",
                     kinds[i].name);
            expect_refused(&kinds[i], &huge, message);
        }
}

TEST(layer_init, an_embedding_of_no_symbols_or_for_another_table_is_refused)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    const sb_transformer_options o = {.width = 4};
    sb_tensor *table = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(5, 6)));
    sb_embedding_layer l;
    cr_expect(!sb_embedding_layer_init(&l, set, "l", 0, &o, NULL));
    cr_expect_str_eq(sb_error(), "embedding: V is 0; it must be at least 1");
    cr_expect(!sb_embedding_layer_init(&l, set, "l", 5, &o, table) && !l.weight);
    cr_expect_str_eq(sb_error(), "embedding: the shared table is (5, 6); it must be (5, 4)");
    cr_expect(sb_parameters_count(set) == 0);
}

CPU_TEST(layer_init, numbers_and_choices_out_of_range_are_refused)
{
    const sb_transformer_options dropout = {.dropout = 1}, odd = {.width = 7},
                                 activation = {.activation = (sb_activation)9},
                                 place = {.norm_place = (sb_norm_place)9},
                                 rotary = {.width = 12, .positions = SB_POSITIONS_ROTARY};
    expect_refused(kind_of(embedding), &dropout, "embedding: dropout is 1; it must be in [0, 1)");
    expect_refused(kind_of(attention), &dropout,
                   "multi_head_attention: dropout is 1; it must be in [0, 1)");
    expect_refused(kind_of(feed_forward), &activation,
                   "feed_forward: activation is 9, not in 0..6");
    expect_refused(kind_of(encoder), &place, "encoder_layer: norm_place is 9, not in 0..2");
    expect_refused(kind_of(embedding), &odd,
                   "embedding: sinusoidal positions need an even width, not 7");
    expect_refused(kind_of(decoder), &rotary,
                   "decoder_layer: rotary positions need an even head size, not 3");
}

/* The name of each layer's last parameter is taken: the parameters added before are removed, and
   the next random numbers are the same as without the failure. */
TEST(layer_init, a_layer_that_fails_late_does_not_change_the_set)
{
    const sb_transformer_options o = {.width = 4, .heads = 2};
    for (int i = 0; i < KINDS; i++) {
        sb_parameters *whole = KEPT(sb_parameters_new(1)), *set = KEPT(sb_parameters_new(1));
        union layer l;
        MUST(kinds[i].init(&l, whole, "l", &o));
        const int64_t n = sb_parameters_count(whole);
        const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
        if (n > 0) {
            cr_assert(sb_parameters_add(set, sb_parameters_name(whole, n - 1), SB_SHAPE(1), zero));
            REFUSED("exists already", kinds[i].init(&l, set, "l", &o));
            cr_expect(all_zero(&l, kinds[i].size), "%s: not zero", kinds[i].name);
            cr_expect(sb_parameters_count(set) == 1 && sb_parameters_size(set) == 1, "%s: %lld",
                      kinds[i].name, (long long)sb_parameters_count(set));
            MUST(kinds[i].init(&l, set, "other", &o));
            for (int64_t k = 0; k < n; k++)
                cr_expect(
                    test_same_bits(sb_parameters_get(whole, k), sb_parameters_get(set, k + 1)),
                    "%s", sb_parameters_name(set, k + 1));
        }
    }
}

TEST(layer_init, an_encoder_or_decoder_that_fails_does_not_change_the_set)
{
    const sb_transformer_options o = {
        .width = 4, .heads = 2, .encoder_layers = 1, .decoder_layers = 1};
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    sb_parameters *set = KEPT(sb_parameters_new(1));
    cr_assert(sb_parameters_add(set, "e.norm.bias", SB_SHAPE(1), zero));
    REFUSED("\"e.norm.bias\" exists already", sb_encoder_new(set, "e", 5, &o));
    REFUSED("\"e.norm.bias\" exists already", sb_decoder_new(set, "e", 5, &o, true, NULL));
    cr_expect(sb_parameters_count(set) == 1 && sb_parameters_size(set) == 1);
}

TEST(layer_init, a_model_that_fails_does_not_change_the_set)
{
    const sb_transformer_options o = {
        .width = 4, .heads = 2, .encoder_layers = 1, .decoder_layers = 1};
    const sb_seq2seq_options pairs = {.transformer = o};
    const sb_language_model_options text = {.transformer = o};
    const sb_initial zero = {SB_INITIAL_CONSTANT, 0};
    sb_vocabulary *v = tiny_vocabulary();
    sb_parameters *set = KEPT(sb_parameters_new(1));
    cr_assert(sb_parameters_add(set, "output.bias", SB_SHAPE(1), zero));
    REFUSED("\"output.bias\" exists already", sb_seq2seq_for(set, v, v, &pairs));
    cr_expect(sb_parameters_count(set) == 1, "%lld", (long long)sb_parameters_count(set));
    REFUSED("\"output.bias\" exists already", sb_language_model_for(set, v, &text));
    cr_expect(sb_parameters_count(set) == 1, "%lld", (long long)sb_parameters_count(set));
}
