/* Masks that come as numbers with -inf. */
#include "tests/support/values.h"
#include <float.h>

static void expect_picture(sb_mask *mask, int64_t Lq, int64_t Lk, const char *expected)
{
    char *text = KEPT(sb_mask_text(mask, 0, 0, Lq, Lk));
    cr_expect(strcmp(text, expected) == 0, "the picture is\n%sand not\n%s", text, expected);
}

/* Every other number is allowed, NaN too: it must stay visible. */
TEST(mask_bias, minus_infinity_alone_blocks)
{
    const sb_dtype dtypes[] = {SB_F32, SB_F64, SB_BF16};
    for (int i = 0; i < 3; i++) {
        const double most = dtypes[i] == SB_F64 ? DBL_MAX : dtypes[i] == SB_F32 ? FLT_MAX : 3.3e38;
        TAPE(SB_NO_RECORD);
        sb_tensor *bias =
            constant(dtypes[i], SB_SHAPE(2, 5),
                     NUMBERS(0, -INFINITY, -most, most, -1, INFINITY, NAN, -1e-38, 3, -INFINITY));
        expect_picture(sb_mask_from_bias(bias), 2, 5, "#.###\n####.\n");
    }
}

/* As the bias too: blocked pairs have weight 0 in either algorithm, and a query without keys is 0
   and not NaN. */
TEST(mask_bias, attention_takes_both_from_one_tensor)
{
    const sb_attention_algorithm algorithms[] = {SB_ATTENTION_COMPOSED, SB_ATTENTION_TILED};
    for (int i = 0; i < 2; i++) {
        TAPE(SB_RECORD);
        sb_tensor *q = test_leaf(SB_F64, 1, SB_SHAPE(3, 2));
        sb_tensor *k = test_leaf(SB_F64, 2, SB_SHAPE(3, 2));
        sb_tensor *v = test_leaf(SB_F64, 3, SB_SHAPE(3, 2));
        sb_tensor *bias = leaf(SB_SHAPE(3, 3), NUMBERS(0.5, -INFINITY, 1, -INFINITY, -INFINITY,
                                                       -INFINITY, -INFINITY, 2, -INFINITY));
        const sb_attention_options o = {
            .bias = bias, .mask = sb_mask_from_bias(bias), .algorithm = algorithms[i]};
        sb_tensor *y = sb_keep(sb_attention(q, k, v, &o));
        MUST(y && sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
        double s[2], weight[2];
        for (int j = 0; j < 2; j++) {
            s[j] = j + 0.5 * (1 - j); /* the bias */
            for (int d = 0; d < 2; d++)
                s[j] += sb_tensor_get(q, d) * sb_tensor_get(k, 4 * j + d) / sqrt(2);
        }
        for (int j = 0; j < 2; j++)
            weight[j] = exp(s[j]) / (exp(s[0]) + exp(s[1]));
        for (int d = 0; d < 2; d++) {
            const double expected =
                weight[0] * sb_tensor_get(v, d) + weight[1] * sb_tensor_get(v, 4 + d);
            cr_expect(fabs(sb_tensor_get(y, d) - expected) < 1e-14);
            cr_expect(sb_tensor_get(y, 2 + d) == 0, "the query without keys");
            cr_expect(fabs(sb_tensor_get(y, 4 + d) - sb_tensor_get(v, 2 + d)) < 1e-15);
        }
        for (int64_t n = 0; n < 6; n++)
            cr_expect(isfinite(sb_tensor_get(sb_tensor_grad(q), n)));
        cr_expect(sb_tensor_get(sb_tensor_grad(bias), 1) == 0);
    }
}
