#include "tests/support/compare.h"

TEST(gather, each_id_chooses_from_its_row)
{
    TAPE(SB_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2, 3), (double[]){0, 1, 2, 10, 11, 12});
    sb_tensor *y = MUST(sb_gather(x, owned(SB_I32, SB_SHAPE(2), (double[]){2, 0})));
    cr_expect(sb_tensor_rank(y) == 1 && sb_tensor_get(y, 0) == 2 && sb_tensor_get(y, 1) == 10);
    sb_tensor *row = owned(SB_F64, SB_SHAPE(3), (double[]){5, 6, 7});
    cr_expect(sb_tensor_value(sb_gather(row, owned(SB_I32, SB_SCALAR, (double[]){1}))) == 6);
}

TEST(gather, backward_adds_at_the_chosen_places)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F64, SB_SHAPE(2, 3))));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2), (double[]){2, 0});
    sb_tensor *y = sb_add(sb_gather(x, ids), sb_gather(x, ids));
    MUST(sb_backward_from(y, owned(SB_F64, SB_SHAPE(2), (double[]){3, 4})));
    const double expected[] = {0, 0, 6, 8, 0, 0};
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x), i) == expected[i]);
}

TEST(gather, a_nan_propagates_only_if_it_is_chosen)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(2, 2), (double[]){NAN, 1, NAN, 1});
    sb_tensor *y = sb_gather(x, owned(SB_I32, SB_SHAPE(2), (double[]){0, 1}));
    cr_expect(isnan(sb_tensor_get(y, 0)) && sb_tensor_get(y, 1) == 1);
}

CPU_TEST(gather, ids_that_change_before_backward_are_found)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3))));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(2)));
    sb_tensor *y = sb_gather(x, ids);
    ((int32_t *)sb_tensor_data(ids))[1] = -5; /* unnoticed */
    cr_expect(!sb_backward_from(y, sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2)))));
    EXPECT_ERROR("gather: id -5 at (1)");
}
