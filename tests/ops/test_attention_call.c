/* The shapes, layouts and options that attention accepts, and its messages for all others. */
#include "tests/support/test.h"

#define LEAF(...) test_leaf(SB_F64, 1, SB_SHAPE(__VA_ARGS__))

TEST(attention_call, inputs_with_fewer_axes_have_one_head)
{
    TAPE(SB_RECORD);
    sb_tensor *q = LEAF(2, 3, 1, 4), *k = LEAF(2, 5, 1, 4), *v = LEAF(2, 5, 1, 2);
    sb_tensor *y = sb_attention(q, k, v, NULL);
    for (int heads_first = 0; heads_first < 2; heads_first++) {
        sb_attention_options o = {.layout =
                                      heads_first ? SB_LAYOUT_HEADS_FIRST : SB_LAYOUT_LENGTH_FIRST};
        sb_tensor *z = sb_attention(LEAF(2, 3, 4), LEAF(2, 5, 4), LEAF(2, 5, 2), &o);
        MUST(y && z);
        cr_expect(sb_tensor_rank(z) == 3);
        cr_expect(test_relative(sb_reshape(z, SB_SHAPE(2, 3, 1, 2)), y) == 0);
    }
    sb_tensor *z = sb_attention(LEAF(3, 4), LEAF(5, 4), LEAF(5, 2), NULL);
    cr_expect(sb_tensor_rank(z) == 2);
    cr_expect(test_relative(z, sb_reshape(sb_slice(y, 0, 0, 1), SB_SHAPE(3, 2))) == 0);
}

/* The layout only changes where rows are read and written. */
TEST(attention_call, heads_first_gives_the_same_bits)
{
    const int order[] = {0, 2, 1, 3};
    TAPE(SB_NO_RECORD);
    sb_tensor *q = LEAF(2, 3, 4, 5), *k = LEAF(2, 6, 2, 5), *v = LEAF(2, 6, 2, 3), *weights[2];
    sb_attention_options o = {.mask = sb_mask_causal_last(), .weights = &weights[0]};
    sb_tensor *y = sb_attention(q, k, v, &o);
    o.layout = SB_LAYOUT_HEADS_FIRST;
    o.weights = &weights[1];
    sb_tensor *z =
        sb_attention(sb_permute(q, 4, order), sb_permute(k, 4, order), sb_permute(v, 4, order), &o);
    MUST(y && z);
    cr_expect(test_relative(sb_permute(z, 4, order), y) == 0);
    cr_expect(test_relative(weights[0], weights[1]) == 0);
    cr_expect(sb_tensor_dim(weights[0], 1) == 4 && sb_tensor_dim(weights[0], 2) == 3);
}

/* Grouped heads are heads repeated. */
TEST(attention_call, a_group_of_query_heads_reads_the_same_keys)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *q = LEAF(1, 2, 4, 3), *k = LEAF(1, 5, 2, 3);
    sb_tensor *first = sb_slice(k, 2, 0, 1), *second = sb_slice(k, 2, 1, 1);
    sb_tensor *repeated = sb_concatenate((sb_tensor *[]){first, first, second, second}, 4, 2);
    sb_tensor *y = MUST(sb_attention(q, k, k, NULL));
    cr_expect(test_relative(y, sb_attention(q, repeated, repeated, NULL)) == 0);
}
