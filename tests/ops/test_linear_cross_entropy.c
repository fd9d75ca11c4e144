#include "ops/cross_entropy.h"
#include "tests/support/compare.h"
#include "tests/support/examples.h"

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_linear_cross_entropy(x[0], x[1], x[2], x[3], NULL);
}

static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_cross_entropy(sb_linear(x[0], x[1], x[2]), x[3], NULL);
}

/* 1500 rows are two chunks and a part of one (see fused_loss_rows_of_chunk). */
TEST(linear_cross_entropy, it_is_linear_and_cross_entropy)
{
    const char *const shapes[] = {
        "1 1x1 1 i1:.",        "3 7x3 7 i7:.",         "3x2 5x2 5 i5:3",  "2x3x4 5x4 5 i5:2x3",
        "63x7 65x7 65 i65:63", "1500x2 3x2 3 i3:1500", "=3x2 5x2 5 i5:3", "3x2 =5x2 5 i5:3",
        "3x2 5x2 =5 i5:3",     "2048x1 2x1 2 i2:2048"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
}

/* A device's chunks are large; here they have one slab of rows. */
TEST(linear_cross_entropy, small_chunks_on_a_device_give_the_same)
{
    const int64_t usual = linear_cross_entropy_logits;
    linear_cross_entropy_logits = 1;
    expect_same_function(fused, composed, "1x7 65x7 65 i65:1");
    expect_same_function(fused, composed, "130x7 65x7 65 i65:130");
    expect_same_function(fused, composed, "192x2 3x2 3 i3:192");
    linear_cross_entropy_logits = usual;
}

static sb_cross_entropy_options options;

static sb_tensor *with_options(void *unused, sb_tensor *const x[])
{
    (void)unused;
    options.class_weight = x[3];
    return sb_linear_cross_entropy(x[0], x[1], NULL, x[2], &options);
}

static sb_tensor *with_options_composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    options.class_weight = x[3];
    return sb_cross_entropy(sb_linear(x[0], x[1], NULL), x[2], &options);
}

TEST(linear_cross_entropy, every_option_gives_the_same_as_in_cross_entropy)
{
    for (sb_reduction reduction = SB_REDUCE_MEAN; reduction <= SB_REDUCE_NONE; reduction++)
        for (int smooth = 0; smooth < 2; smooth++) {
            options = (sb_cross_entropy_options){smooth * 0.1, NULL, reduction};
            expect_same_function(with_options, with_options_composed, "7x3 5x3 i5:7 =+5");
            expect_same_function(with_options, with_options_composed, "1100x2 4x2 i4:1100 =+4");
        }
}

TEST(linear_cross_entropy, negative_ids_are_ignored)
{
    sb_tensor *df[4], *dg[4];
    const struct inputs in = inputs_new("1100x2 3x2 3 i3:1100", SB_F64, 1);
    sb_tensor *const *x = in.x;
    for (int i = 0; i < 1100; i += 3)
        sb_tensor_set(x[3], i, -1 - i);
    sb_tensor *yf = run_with_gradients(fused, x, 4, df),
              *yg = run_with_gradients(composed, x, 4, dg);
    cr_expect(test_relative(yf, yg) < 1e-12);
    cr_expect(sb_tensor_get(df[0], 0) == 0 && sb_tensor_get(df[0], 1) == 0 &&
              sb_tensor_get(df[0], 2) != 0);
    for (int i = 0; i < 4; i++) {
        cr_expect(i == 3 || test_relative(df[i], dg[i]) < 1e-12);
    }
}

/* 4096 logits of 1000 classes in f32 are 16 MB. */
TEST(linear_cross_entropy, the_logits_are_never_all_in_memory)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    const int64_t usual = linear_cross_entropy_logits;
    linear_cross_entropy_logits = 1 << 20;
    sb_tensor *dx[4];
    const struct inputs in = inputs_new("4096x2 1000x2 1000 i1000:4096", SB_F32, 1);
    sb_tensor *const *x = in.x;
    sb_device_reset_peak(sb_device_in_use());
    int64_t before = memory_in_use().peak_bytes;
    run_with_gradients(fused, x, 4, dx);
    int64_t taken = memory_in_use().peak_bytes - before;
    linear_cross_entropy_logits = usual;
    cr_expect(taken < 6 << 20, "it took %lld bytes", (long long)taken);
}

TEST(linear_cross_entropy, no_rows_give_zero_and_zero_gradients)
{
    const struct inputs in = inputs_new("0x2 3x2 i3:0", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_linear_cross_entropy(
        x[0], x[1], NULL, x[2], &(sb_cross_entropy_options){.reduction = SB_REDUCE_SUM});
    cr_expect(sb_tensor_value(loss) == 0);
    MUST(sb_backward(loss));
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x[1]), i) == 0);
}

/* Forward computes the gradients for dy = 1; backward scales them and adds to existing ones. */
TEST(linear_cross_entropy, gradients_are_proportional_to_dy)
{
    double grad[2][6];
    for (int i = 0; i < 2; i++) {
        TAPE(SB_RECORD);
        struct inputs in = inputs_new("3x2 4x2 i4:3", SB_F64, 1);
        sb_tensor *x = in.x[0];
        sb_tensor *loss = sb_linear_cross_entropy(x, in.x[1], NULL, in.x[2], NULL);
        sb_tensor *more = sb_sum(sb_scale(x, 5), SB_ALL, false);
        MUST(sb_backward(i ? sb_add(sb_scale(loss, -3), more) : loss));
        cr_assert(sb_tensor_read(sb_tensor_grad(x), grad[i]));
    }
    for (int e = 0; e < 6; e++)
        cr_expect(fabs(grad[1][e] - (5 - 3 * grad[0][e])) < 1e-14, "%g, %g", grad[1][e],
                  grad[0][e]);
}

/* Forward computes the gradients, but requires_grad counts when backward runs. */
TEST(linear_cross_entropy, requires_grad_may_change_between_forward_and_backward)
{
    double grad[2][8];
    for (int late = 0; late < 2; late++) {
        struct inputs in = inputs_new(late ? "3x2 =4x2 i4:3" : "3x2 4x2 i4:3", SB_F64, 1);
        TAPE(SB_RECORD);
        sb_tensor *loss = sb_linear_cross_entropy(in.x[0], in.x[1], NULL, in.x[2], NULL);
        in.x[1]->requires_grad = true;
        in.x[0]->requires_grad = !late;
        MUST(sb_backward(loss));
        cr_assert(sb_tensor_read(sb_tensor_grad(in.x[1]), grad[late]));
        cr_expect(!late || !sb_tensor_grad(in.x[0]));
    }
    for (int e = 0; e < 8; e++)
        cr_expect(fabs(grad[1][e] - grad[0][e]) < 1e-14, "%g, %g", grad[1][e], grad[0][e]);
}

TEST(linear_cross_entropy, a_gradient_that_is_no_longer_wanted_is_left_out)
{
    struct inputs in = inputs_new("3x2 4x2 i4:3", SB_F64, 1);
    TAPE(SB_RECORD);
    sb_tensor *loss = sb_linear_cross_entropy(in.x[0], in.x[1], NULL, in.x[2], NULL);
    in.x[0]->requires_grad = false;
    MUST(sb_backward(loss));
    cr_expect(!sb_tensor_grad(in.x[0]) && sb_tensor_grad(in.x[1]));
}
