/* Published architectures, by options: logits and gradients agree with small random models of
   Hugging Face's transformers. See make_transformers.py in tests/golden, which maps the names of
   weights. */
#include "tests/support/reference.h"
#include "tests/support/tiny.h"
#include <stdio.h>

static const double of_logits = 1e-5, of_gradients = 1e-4; /* shares of the largest number */

#define SIZES(H, layers)                                                                           \
    .width = 8, .heads = H, .feed_forward = 12, .encoder_layers = layers, .decoder_layers = layers

/* The largest difference from a stored tensor, as a share of its largest number or of `least`. */
static double error_of(const sb_safetensors *file, const char *path, const char *name,
                       sb_tensor *got, double least)
{
    double worst = 0, largest = least;
    sb_tensor *expected = sb_safetensors_tensor(file, reference_name(path, name).text);
    cr_assert(expected && got, "%s.%s: %s", path, name, sb_error());
    cr_assert(shape_equal(got->rank, got->dim, expected->rank, expected->dim), "%s.%s is %s", path,
              name, tensor_shape(got).text);
    for (int64_t i = 0; i < sb_tensor_size(got); i++) {
        const double difference = fabs(sb_tensor_get(got, i) - sb_tensor_get(expected, i));
        worst = difference >= 0 ? fmax(worst, difference) : INFINITY;
        largest = fmax(largest, fabs(sb_tensor_get(expected, i)));
    }
    sb_tensor_release(expected);
    return worst / largest;
}

/* A key's bias has a gradient of 0 but for rounding: it is measured by a query's. */
static void expect_gradients(const sb_safetensors *file, const char *path,
                             const sb_parameters *weights)
{
    for (int64_t i = 0; i < sb_parameters_count(weights); i++) {
        char name[200];
        const char *own = sb_parameters_name(weights, i);
        snprintf(name, sizeof name, "d.%s", own);
        sb_tensor *gradient = sb_tensor_grad(sb_parameters_get(weights, i));
        const double error = error_of(file, path, name, gradient, 1e-3);
        cr_expect(error < of_gradients, "%s, the gradient of %s: %g", path, own, error);
    }
}

static void expect_results(const sb_safetensors *file, const char *path, sb_tensor *logits,
                           sb_tensor *loss, const sb_parameters *weights)
{
    double error = error_of(file, path, "logits", logits, 0);
    cr_expect(error < of_logits, "%s: logits: %g", path, error);
    cr_assert(sb_backward(sb_keep(loss)), "%s: %s", path, sb_error());
    error = error_of(file, path, "loss", loss, 0);
    cr_expect(error < of_logits, "%s: loss: %g", path, error);
    expect_gradients(file, path, weights);
}

struct language {
    const char *path;
    sb_language_model_options options;
};

static void compare_language(const sb_safetensors *file, const struct language *l, sb_dtype dtype)
{
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_parameters *weights = KEPT(sb_parameters_of(dtype, 1));
    sb_language_model *model = KEPT(sb_language_model_for(weights, vocabulary, &l->options));
    cr_assert(model, "%s: %s", l->path, sb_error());
    reference_read_weights(file, l->path, weights);
    TAPE(SB_RECORD);
    sb_tensor *input = reference_tensor(file, reference_name(l->path, "input").text, dtype),
              *targets = reference_tensor(file, reference_name(l->path, "targets").text, dtype);
    expect_results(file, l->path, sb_keep(sb_language_model_window_logits(model, input)),
                   sb_language_model_window_loss(model, input, targets), weights);
}

static const struct language languages[] = {
    {"gpt2",
     {.transformer = {SIZES(2, 2), .positions = SB_POSITIONS_LEARNED, .positions_longest = 9,
                      .activation = SB_ACTIVATION_GELU_TANH, .embedding_scale = 1,
                      .position_scale = 1, .norm_epsilon = 1e-3, .no_output_bias = true},
      .tie_embeddings = true}},
    {"llama",
     {.transformer = {SIZES(4, 2), .key_heads = 2, .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_SILU, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-4, .biases = SB_BIASES_NONE, .embedding_scale = 1,
                      .positions = SB_POSITIONS_ROTARY, .rotary_base = 500, .rotary_scaling = 4}}},
    {"qwen2",
     {.transformer = {SIZES(4, 1), .key_heads = 2, .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_SILU, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-4, .biases = SB_BIASES_QKV, .embedding_scale = 1,
                      .positions = SB_POSITIONS_ROTARY}}},
    {"llama3",
     {.transformer = {SIZES(4, 1), .key_heads = 2, .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_SILU, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-4, .biases = SB_BIASES_NONE, .embedding_scale = 1,
                      .positions = SB_POSITIONS_ROTARY, .rotary_base = 10, .rotary_scaling = 8,
                      .rotary_original = 16, .rotary_high_factor = 2}}},
    {"qwen3",
     {.transformer = {SIZES(4, 2), .key_heads = 2, .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_SILU, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-4, .biases = SB_BIASES_NONE, .embedding_scale = 1,
                      .positions = SB_POSITIONS_ROTARY, .qk_norm = true}}},
    {"gemma2",
     {.transformer = {SIZES(4, 2), .key_heads = 2, .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_GELU_TANH, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-4, .biases = SB_BIASES_NONE,
                      .norm_place = SB_NORM_SANDWICH, .positions = SB_POSITIONS_ROTARY},
      .tie_embeddings = true}}};

struct pairs {
    const char *path;
    sb_seq2seq_options options;
};

static void compare_pairs(const sb_safetensors *file, const struct pairs *p, sb_dtype dtype)
{
    static const char *const names[] = {"source", "source_lengths", "target_in", "target_out"};
    struct tiny tiny = tiny_new(dtype, 1, &p->options);
    reference_read_weights(file, p->path, tiny.weights);
    TAPE(SB_RECORD);
    sb_batch batch = {.parts = 4};
    for (int i = 0; i < 4; i++)
        batch.part[i] = (sb_batch_part){
            .name = names[i],
            .t = reference_tensor(file, reference_name(p->path, names[i]).text, dtype)};
    expect_results(file, p->path, sb_keep(sb_seq2seq_logits(tiny.model, &batch, NULL)),
                   sb_seq2seq_loss(tiny.model, &batch), tiny.weights);
}

static const struct pairs encoder_decoders[] = {
    {"marian",
     {.transformer = {SIZES(2, 2), .norm_place = SB_NORM_POST, .activation = SB_ACTIVATION_SILU,
                      .positions = SB_POSITIONS_HALVES},
      .tie_embeddings = true,
      .share_embeddings = true}},
    {"bart",
     {.transformer = {SIZES(2, 2), .norm_place = SB_NORM_POST, .activation = SB_ACTIVATION_GELU,
                      .positions = SB_POSITIONS_LEARNED, .positions_longest = 9,
                      .position_offset = 2, .position_scale = 1, .embedding_norm = true},
      .tie_embeddings = true,
      .share_embeddings = true}},
    {"t5",
     {.transformer = {SIZES(2, 2), .head_size = 6, .gated = true,
                      .activation = SB_ACTIVATION_GELU_TANH, .norm_kind = SB_NORM_KIND_RMS,
                      .norm_epsilon = 1e-5, .biases = SB_BIASES_NONE, .embedding_scale = 1,
                      .score_scale = 1, .positions = SB_POSITIONS_BUCKETS, .position_buckets = 8,
                      .position_distance = 6},
      .tie_embeddings = true,
      .share_embeddings = true}}};

static sb_safetensors *open_references(void)
{
    sb_safetensors *file = MUST(sb_safetensors_open(test_path("golden/transformers.safetensors")));
    return KEPT(file);
}

TEST(transformers, language_models_are_as_published, KNOWN_KERNELS)
{
    sb_safetensors *file = open_references();
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        for (int single = 0; single < 2; single++)
            compare_language(file, &languages[i], single ? SB_F32 : SB_F64);
}

TEST(transformers, marian_bart_and_t5_are_as_published, KNOWN_KERNELS)
{
    sb_safetensors *file = open_references();
    for (int i = 0; i < 3; i++)
        for (int single = 0; single < 2; single++)
            compare_pairs(file, &encoder_decoders[i], single ? SB_F32 : SB_F64);
}

/* ---- BERT, an encoder ---- */

static const sb_transformer_options bert = {SIZES(2, 2),
                                            .norm_place = SB_NORM_POST,
                                            .activation = SB_ACTIVATION_GELU,
                                            .positions = SB_POSITIONS_LEARNED,
                                            .positions_longest = 9,
                                            .embedding_scale = 1,
                                            .position_scale = 1,
                                            .embedding_norm = true,
                                            .segments = 2};

static void compare_bert(const sb_safetensors *file, sb_dtype dtype)
{
    static const char *const names[] = {"bert.ids", "bert.segments", "bert.lengths", "bert.dy"};
    sb_tensor *in[4];
    sb_parameters *weights = KEPT(sb_parameters_of(dtype, 1));
    sb_encoder *encoder = KEPT(sb_encoder_new(weights, "encoder", 11, &bert));
    reference_read_weights(file, "bert", weights);
    TAPE(SB_RECORD);
    for (int i = 0; i < 4; i++)
        in[i] = reference_tensor(file, names[i], dtype);
    sb_tensor *y = sb_encoder_forward_segments(encoder, in[0], in[1], in[2], NULL);
    sb_tensor *seen = sb_reshape(sb_cast(in[3], SB_BOOL), SB_SHAPE(3, 5, 8));
    y = sb_keep(sb_where(seen, y, sb_scale(y, 0)));
    MUST(sb_backward(sb_sum(sb_multiply(y, in[3]), SB_ALL, false)));
    const double error = error_of(file, "bert", "output", y, 0);
    cr_expect(error < of_logits, "bert: output: %g", error);
    expect_gradients(file, "bert", weights);
}

TEST(transformers, bert_is_as_published)
{
    sb_safetensors *file = open_references();
    for (int single = 0; single < 2; single++)
        compare_bert(file, single ? SB_F32 : SB_F64);
}

TEST(transformers, segments_must_fit_the_ids_and_the_layer)
{
    static const struct {
        int count, length;
        const char *message; /* NULL: they fit */
    } cases[] = {{2, 3, NULL},
                 {2, 2, "embedding: segments are (1, 2), ids are (1, 3): shapes differ"},
                 {0, 3, "embedding: segments are given, but the layer has none"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sb_transformer_options options = {.width = 4, .segments = cases[i].count};
        sb_parameters *weights = KEPT(sb_parameters_of(SB_F32, 1));
        sb_embedding_layer layer;
        cr_assert(sb_embedding_layer_init(&layer, weights, "e", 5, &options, NULL));
        sb_tape tape;
        sb_tape_begin(&tape, SB_NO_RECORD);
        sb_tensor *ids = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(1, 3), (int32_t[]){1, 2, 3}));
        sb_tensor *segments = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(1, cases[i].length)));
        cr_expect(sb_embedding_layer_forward(&layer, ids, 0) != NULL, "%s", sb_error());
        cr_expect(!sb_embedding_layer_forward_segments(&layer, ids, segments, 0) ==
                  (cases[i].message != NULL));
        cr_expect(!cases[i].message || strstr(sb_error(), cases[i].message), "%s", sb_error());
        cr_expect(sb_tape_end(&tape) == !cases[i].message);
    }
}

/* ---- options that are wrong ---- */

CPU_TEST(transformers, options_that_no_model_can_have_are_refused)
{
    static const struct {
        sb_transformer_options options;
        const char *message;
    } bad[] = {
        {{.head_size = -1}, "head_size is -1, not in 0..65536; 0 gives width / heads"},
        {{.head_size = 5, .positions = SB_POSITIONS_ROTARY}, "need an even head size, not 5"},
        {{.norm_epsilon = -1e-5}, "norm_epsilon is -1e-05; it must be positive, or 0 for the"},
        {{.norm_epsilon = NAN}, "norm_epsilon is nan"},
        {{.biases = (sb_biases)3}, "biases is 3, not in 0..2"},
        {{.score_scale = -1}, "score_scale is -1; it must be positive"},
        {{.embedding_scale = INFINITY}, "embedding_scale is inf; it must be positive"},
        {{.position_scale = -2}, "position_scale is -2"},
        {{.segments = -1}, "segments is -1, not in 0..65536; 0 gives none"},
        {{.output_scale = -1}, "output_scale is -1; it must be positive"},
        {{.position_offset = -1}, "position_offset is -1, not in 0..16777216"},
        {{.rotary_base = -1}, "rotary_base is -1"},
        {{.rotary_scaling = NAN}, "rotary_scaling is nan"},
        {{.rotary_original = -1}, "rotary_original is -1, not in 0..16777216; 0 scales all"},
        {{.rotary_interval = -2}, "rotary_interval is -2"},
        {{.rotary_low_factor = 5}, "rotary_low_factor is 5, rotary_high_factor is 4; both must be"},
        {{.position_buckets = 7}, "position_buckets is 7; it must be even and in 4..65536"},
        {{.position_buckets = 2}, "position_buckets is 2; it must be even"},
        {{.position_distance = 16}, "position_distance is 16, not in 17..1048576: above half"},
        {{.width = 7, .heads = 1, .positions = SB_POSITIONS_HALVES},
         "sinusoidal positions need an even width, not 7"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sb_transformer_options complete;
        cr_expect(!sb_transformer_complete(&bad[i].options, &complete) &&
                      strstr(sb_error(), bad[i].message),
                  "%zu: %s", i, sb_error());
    }
}

TEST(transformers, positions_with_an_offset_end_where_the_table_does)
{
    const sb_transformer_options options = {.width = 4,
                                            .positions_longest = 3,
                                            .position_offset = 2,
                                            .positions = SB_POSITIONS_LEARNED};
    sb_parameters *weights = KEPT(sb_parameters_of(SB_F32, 1));
    sb_embedding_layer layer;
    MUST(sb_embedding_layer_init(&layer, weights, "e", 5, &options, NULL));
    cr_expect(sb_tensor_dim(layer.position, 0) == 5);
    FAILED_TAPE(SB_NO_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(1, 3), (int32_t[]){1, 2, 3}));
    cr_expect(sb_embedding_layer_forward(&layer, ids, 0) != NULL, "%s", sb_error());
    REFUSED("embedding: position 3 is beyond the 3 learned ones",
            sb_embedding_layer_forward(&layer, ids, 1));
}
