#include "tests/support/values.h"

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
    cr_expect(!sb_convolution_init(&layer, weights, "c", 3, 4, 0, true, NULL));
    EXPECT_ERROR("convolution: width is 0; it must be at least 1");
    cr_expect(!sb_convolution_init(&layer, weights, "c", 0, 4, 2, true, NULL));
    EXPECT_ERROR("convolution: in is 0; it must be at least 1");
    cr_expect(!sb_convolution_init(&layer, weights, "c", INT64_MAX / 2, 4, 3, true, NULL));
    EXPECT_ERROR("their product is too large");
    cr_expect(!sb_convolution_init(&layer, weights, "c", 3, 0, 2, true, NULL));
    EXPECT_ERROR("linear: out is 0");
    cr_expect(sb_parameters_count(weights) == 0 && !layer.linear.weight);
}
