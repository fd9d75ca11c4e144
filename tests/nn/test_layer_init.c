/* Inits of layers: defaults for zeros, and failures for invalid options. */
#include "tests/support/tiny.h"
#include <stdio.h>

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

static bool linear(union layer *l, sb_parameters *set, const char *name,
                   const sb_transformer_options *o)
{
    return sb_linear_layer_init((void *)l, set, name, 3, o ? o->width : 4, true);
}

static bool linear_cut(union layer *l, sb_parameters *set, const char *name,
                       const sb_transformer_options *o)
{
    return sb_linear_layer_init_cut((void *)l, set, name, o ? o->width : 4, 3, true,
                                    (sb_cut){NULL, 0});
}

static bool norm(union layer *l, sb_parameters *set, const char *name,
                 const sb_transformer_options *o)
{
    return sb_norm_layer_init((void *)l, set, name, o ? o->width : 4, SB_NORM_KIND_LAYER);
}

static bool embedding(union layer *l, sb_parameters *set, const char *name,
                      const sb_transformer_options *o)
{
    return sb_embedding_layer_init((void *)l, set, name, 5, o, NULL);
}

static bool feed_forward(union layer *l, sb_parameters *set, const char *name,
                         const sb_transformer_options *o)
{
    return sb_feed_forward_init((void *)l, set, name, o);
}

static bool position_bias(union layer *l, sb_parameters *set, const char *name,
                          const sb_transformer_options *o)
{
    return sb_position_bias_init((void *)l, set, name, o);
}

static bool attention(union layer *l, sb_parameters *set, const char *name,
                      const sb_transformer_options *o)
{
    return sb_multi_head_attention_init((void *)l, set, name, o, false);
}

static bool additive(union layer *l, sb_parameters *set, const char *name,
                     const sb_transformer_options *o)
{
    return sb_additive_attention_init((void *)l, set, name, 2, o ? o->width : 4, 3, true, 0);
}

static bool multiplicative(union layer *l, sb_parameters *set, const char *name,
                           const sb_transformer_options *o)
{
    return sb_multiplicative_attention_init((void *)l, set, name, 2, o ? o->width : 4, 0);
}

static bool cosine(union layer *l, sb_parameters *set, const char *name,
                   const sb_transformer_options *o)
{
    (void)o;
    return sb_cosine_attention_init((void *)l, set, name, 0, 0);
}

static bool encoder(union layer *l, sb_parameters *set, const char *name,
                    const sb_transformer_options *o)
{
    return sb_encoder_layer_init((void *)l, set, name, o);
}

static bool decoder(union layer *l, sb_parameters *set, const char *name,
                    const sb_transformer_options *o)
{
    return sb_decoder_layer_init((void *)l, set, name, o, true);
}

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
    cr_expect(!sb_transformer_complete(NULL, NULL));
    EXPECT_ERROR("transformer: complete is NULL");
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
            cr_expect(!kinds[i].init(&l, set, "l", &o));
            EXPECT_ERROR("exists already");
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
    cr_expect(!sb_encoder_new(set, "e", 5, &o));
    EXPECT_ERROR("\"e.norm.bias\" exists already");
    cr_expect(!sb_decoder_new(set, "e", 5, &o, true, NULL));
    EXPECT_ERROR("\"e.norm.bias\" exists already");
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
    cr_expect(!sb_seq2seq_for(set, v, v, &pairs));
    EXPECT_ERROR("\"output.bias\" exists already");
    cr_expect(sb_parameters_count(set) == 1, "%lld", (long long)sb_parameters_count(set));
    cr_expect(!sb_language_model_for(set, v, &text));
    EXPECT_ERROR("\"output.bias\" exists already");
    cr_expect(sb_parameters_count(set) == 1, "%lld", (long long)sb_parameters_count(set));
}
