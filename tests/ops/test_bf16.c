/* bf16 is a storage format: computation is in f32, and results and gradients are rounded. */
#include "nn/encoder.h"
#include "tests/support/examples.h"
#include "tests/support/values.h"
#include <float.h>

CPU_TEST(bf16, floats_are_rounded_to_the_nearest_and_ties_to_even)
{
    static const struct {
        float from;
        uint16_t to;
    } cases[] = {
        {1, 0x3f80},         {-2, 0xc000},          {0x1.01p0f, 0x3f80}, /* halfway: the even one */
        {0x1.03p0f, 0x3f82}, {0x1.0102p0f, 0x3f81}, {FLT_MAX, 0x7f80},   {-INFINITY, 0xff80},
        {0x1p-149f, 0x0000}, {0x1p-133f, 0x0001},   {-0.0f, 0x8000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect(sb_bf16_round(cases[i].from) == cases[i].to, "%a becomes %04x, not %04x",
                  (double)cases[i].from, sb_bf16_round(cases[i].from), cases[i].to);
    cr_expect(isnan(sb_bf16_widen(sb_bf16_round(NAN))));
    uint32_t signalling = 0x7f800001;
    float value;
    memcpy(&value, &signalling, sizeof value);
    cr_expect(isnan(sb_bf16_widen(sb_bf16_round(value))));
    for (uint32_t bits = 0; bits < 1u << 16; bits++)
        cr_assert(isnan(sb_bf16_widen((uint16_t)bits)) ||
                  sb_bf16_round(sb_bf16_widen((uint16_t)bits)) == bits);
}

/* The same values in another real dtype. */
static struct inputs inputs_as(sb_dtype dtype, const struct inputs *from)
{
    struct inputs in = {.n = from->n};
    for (int i = 0; i < in.n; i++) {
        const sb_tensor *x = from->x[i];
        in.x[i] = KEPT(sb_tensor_from_doubles(sb_dtype_is_real(x->dtype) ? dtype : x->dtype,
                                              x->rank, x->dim, numbers_of(x)));
        if (x->requires_grad)
            sb_tensor_requires_grad(in.x[i]);
    }
    return in;
}

/* An example is one operation, or a few: each may be off by half an ulp of bf16, and what is stored
   for backward is rounded too. */
static void agrees_with_f32(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_BF16, 1), wide = inputs_as(SB_F32, &in);
    struct results exact = example_must_run(e, shapes, &wide);
    struct results rounded = example_must_run(e, shapes, &in);
    double relative = results_relative(&rounded, &exact);
    cr_expect(relative <= 3 * 0x1p-8, "%s %s: bf16 is off by %g", e->name, shapes, relative);
}

TEST(bf16, every_operation_agrees_with_f32_up_to_rounding)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    for_each_example(agrees_with_f32);
}

/* The dtype of an example's result for bf16: a loss keeps the dtype of its computation. */
static sb_dtype dtype_of_result(const char *name)
{
    static const struct {
        const char *name;
        sb_dtype dtype;
    } others[] = {{"cross_entropy", SB_F32},
                  {"linear_cross_entropy", SB_F32},
                  {"mean_squared_error", SB_F32},
                  {"argmax", SB_I32}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i].name) == 0)
            return others[i].dtype;
    return SB_BF16;
}

static void returns_bf16(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_BF16, 1);
    sb_tape tape;
    example_begin(&tape, SB_RECORD);
    const sb_tensor *y = e->run(NULL, in.x);
    cr_assert(y, "%s %s: %s", e->name, shapes, sb_error());
    if (strcmp(e->name, "cast") != 0) /* the caller chooses its dtype */
        cr_expect(sb_tensor_dtype(y) == dtype_of_result(e->name), "%s %s: the result is %s",
                  e->name, shapes, sb_dtype_name(sb_tensor_dtype(y)));
    cr_expect(sb_tape_end(&tape), "%s", sb_error());
}

TEST(bf16, every_result_is_bf16_but_for_losses_and_indices)
{
    for_each_example_once(returns_bf16);
}

TEST(bf16, results_and_gradients_are_stored_as_bf16_and_losses_as_f32)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(2, 3), 1.5)));
    TAPE(SB_RECORD);
    sb_tensor *y = sb_softmax(sb_multiply(x, x));
    const int32_t ids[] = {2, 0};
    sb_tensor *targets = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(2), ids));
    sb_tensor *loss = sb_cross_entropy(y, targets, NULL);
    cr_expect(sb_tensor_dtype(y) == SB_BF16 && sb_tensor_dtype(loss) == SB_F32);
    MUST(sb_backward(loss));
    cr_expect(sb_tensor_dtype(sb_tensor_grad(x)) == SB_BF16);
}

TEST(bf16, gradients_of_two_uses_add_up)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(3), 2)));
    TAPE(SB_RECORD);
    MUST(sb_backward(sb_sum(sb_cast(sb_add(sb_multiply(x, x), x), SB_F32), 0, false)));
    expect_numbers(sb_tensor_grad(x), 3, (double[]){5, 5, 5});
}

/* Operations with two outputs, with many inputs, and with a loss. */
static bool rounded_step(void *context)
{
    sb_tensor *const *x = context, *sum = NULL, *weights = NULL;
    const sb_attention_options o = {.log_temperature = x[2], .weights = &weights};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_residual_layer_norm(x[0], x[0], 0, x[1], NULL, 0, &sum);
    y = sb_concatenate((sb_tensor *[]){y, sum}, 2, 0);
    y = sb_attention(y, y, y, &o);
    y = sb_multiply(y, sb_sum(weights, -1, true));
    sb_backward(sb_mean_squared_error(y, sb_detach(sb_negate(y)), SB_REDUCE_SUM));
    for (int i = 0; i < 3; i++)
        sb_tensor_clear_grad(x[i]);
    return sb_tape_end(&tape);
}

TEST(bf16, each_allocation_may_fail)
{
    sb_tensor *x[] = {test_leaf(SB_BF16, 1, SB_SHAPE(2, 4)), test_leaf(SB_BF16, 2, SB_SHAPE(4)),
                      test_leaf(SB_BF16, 3, SB_SCALAR)};
    cr_expect(test_each_allocation_fails(rounded_step, x) > 0);
}

/* The bytes that an encoder of six layers holds for backward, for 128 sequences of 16, and the most
   that it held before backward ended. */
static void encoder_bytes(sb_precision precision, double *held, double *most)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_transformer_options o = {.width = 64,
                                .feed_forward = 256,
                                .encoder_layers = 6,
                                .heads = 1,
                                .dropout = 0.1,
                                .precision = precision};
    sb_encoder *encoder = KEPT(sb_encoder_new(set, "encoder", 8, &o));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(128, 16))),
              *lengths = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(128), 16));
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    const int64_t before = memory_in_use().live_bytes;
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_encoder_forward(encoder, ids, lengths, NULL);
    *held = (double)(memory_in_use().live_bytes - before);
    MUST(sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
    *most = (double)(memory_in_use().peak_bytes - before);
}

TEST(bf16, activations_of_a_transformer_take_at_most_0_55_of_those_of_f32)
{
    too_slow(SANITIZED, "it measures memory of what other tests run too");
    double held[2], most[2];
    encoder_bytes(SB_PRECISION_BF16, &held[1], &most[1]);
    encoder_bytes(SB_PRECISION_F32, &held[0], &most[0]);
    cr_expect(held[1] <= 0.55 * held[0], "%.0f bytes, with f32 %.0f", held[1], held[0]);
    cr_expect(most[1] <= most[0], "at most %.0f bytes, with f32 %.0f", most[1], most[0]);
}
