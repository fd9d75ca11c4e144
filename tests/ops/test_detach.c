#include "tests/support/values.h"

/* d (x detach(x)) / dx = x, not 2 x. */
TEST(detach, no_gradient_flows_through_it)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_detach(x);
    cr_expect(y->data == x->data, "the data is shared");
    cr_assert(sb_backward(sb_sum(sb_multiply(x, y), SB_ALL, false)), "%s", sb_error());
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 4));
    sb_tape_end(&tape);
}

TEST(detach, a_loss_of_detached_inputs_alone_cannot_be_differentiated)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(!sb_backward(sb_detach(leaf(SB_SCALAR, NUMBERS(1)))));
    EXPECT_ERROR("depends on nothing that requires a gradient");
    cr_expect(!sb_tape_end(&tape));
}

TEST(detach, ids_can_be_detached_and_null_not)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    expect_numbers(sb_detach(constant(SB_I32, SB_SHAPE(2), NUMBERS(5, 6))), NUMBERS(5, 6));
    cr_expect(!sb_detach(NULL));
    EXPECT_ERROR("detach: x is NULL");
    cr_expect(!sb_tape_end(&tape));
}
