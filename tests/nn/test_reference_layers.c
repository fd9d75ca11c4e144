/* Multi-head attention, encoder and decoder layers agree with PyTorch's, in value and in the
   gradients of all inputs and weights: see tests/golden/references/layers.py. */
#include "tests/support/reference.h"

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
    cr_assert(sb_transformer_complete(&options, &complete) && c->kind->init(&layer, set, &complete),
              "%s", sb_error());
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
