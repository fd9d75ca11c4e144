#include "tests/support/values.h"

/* d (x detach(x)) / dx = x, not 2 x. */
TEST(detach, no_gradient_flows_through_it)
{
    TAPE(SB_RECORD);
    sb_tensor *x = leaf(SB_SHAPE(2), NUMBERS(3, 4));
    sb_tensor *y = sb_detach(x);
    cr_expect(y->data == x->data, "the data is shared");
    MUST(sb_backward(sb_sum(sb_multiply(x, y), SB_ALL, false)));
    expect_numbers(sb_tensor_grad(x), NUMBERS(3, 4));
}

TEST(detach, ids_can_be_detached)
{
    TAPE(SB_RECORD);
    expect_numbers(sb_detach(constant(SB_I32, SB_SHAPE(2), NUMBERS(5, 6))), NUMBERS(5, 6));
}
