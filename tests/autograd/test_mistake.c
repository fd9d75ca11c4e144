#include "tests/support/mistaken.h"

/* y = x, without a backward */
static const sb_operation cut_operation = {"cut", "x", NULL, false, false};
static sb_tensor *cut(sb_tensor *x)
{
    sb_node *node = sb_node_new(&cut_operation, 1, &x, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    if (y)
        memcpy(y->data, x->data, tensor_bytes(x));
    return y;
}

static sb_tensor *f_cut_first(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *a = cut(x[0]);
    return a ? sum(a, x[1], SUMMED) : NULL;
}

CPU_TEST(mistake, a_detached_input_fails)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, 3)), test_leaf(SB_F64, 2, SB_SHAPE(3))};
    sb_gradcheck_result result = check(f_cut_first, 0, 0, 2, x);
    EXPECT_MISTAKE(result, "detached");
    cr_expect(result.input == 0 && result.backward == 0 && fabs(result.error - 1) < 1e-9);
}

static sb_tensor *f_cut(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return cut(x[0]);
}

CPU_TEST(mistake, a_function_detached_from_all_inputs_fails)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3));
    EXPECT_MISTAKE(check(f_cut, 0, 0, 1, &x), "detached");
}

CPU_TEST(mistake, assigning_instead_of_adding_is_named)
{
    EXPECT_MISTAKE(check_square(1, ASSIGNED), "assigned instead of added");
    EXPECT_MISTAKE(check_square(1e-9, ASSIGNED), "assigned instead of added");
    EXPECT_MISTAKE(check_square(1, FRESH_ONLY), "assigned instead of added");
}

CPU_TEST(mistake, assigning_where_an_input_is_used_twice_is_named)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    EXPECT_MISTAKE(check(f_square_twice, 1, ASSIGNED, 1, &x), "assigned instead of added");
}

CPU_TEST(mistake, a_lost_factor_is_named)
{
    EXPECT_MISTAKE(check_square(1, DOUBLED),
                   "exactly 2.000 times too large everywhere: a factor is lost");
    EXPECT_MISTAKE(check_square(1, HALVED),
                   "exactly 2.000 times too small everywhere: a factor is lost");
}

/* A single number is always a multiple of another: only a simple factor is reported. */
CPU_TEST(mistake, the_factor_of_a_single_element_is_named_only_if_it_is_an_integer)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_scalar(SB_F64, 0.7)));
    EXPECT_MISTAKE(check(f_square, 1, HALVED, 1, &x), "exactly 2.000 times too small");
    sb_gradcheck_result result = check(f_square, 1, HALF_MORE, 1, &x);
    cr_expect(!result.ok && result.mistake[0] == '\0', "%s", result.mistake);
    EXPECT_MISTAKE(check_square(1, HALF_MORE), "exactly 1.500 times too large");
}

CPU_TEST(mistake, a_wrong_sign_is_named)
{
    EXPECT_MISTAKE(check_square(1, NEGATED), "sign");
}

CPU_TEST(mistake, a_transposed_gradient_is_named)
{
    for (int64_t M = 3; M <= 4; M++) {
        sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(M, 4)),
                          test_leaf(SB_F64, 2, SB_SHAPE(4, 2))};
        sb_gradcheck_result result = check(f_product, 0, GRADIENT_TRANSPOSED, 2, x);
        EXPECT_MISTAKE(result, "transposed");
        cr_expect(result.input == 0);
    }
}

CPU_TEST(mistake, a_transposed_product_is_named)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(4, 4)), test_leaf(SB_F64, 2, SB_SHAPE(4, 4))};
    double before[16], after[16];
    sb_tensor_read(x[1], before);
    EXPECT_MISTAKE(check(f_product, 0, PRODUCT_TRANSPOSED, 2, x), "as if input 1 were transposed");
    sb_tensor_read(x[1], after);
    cr_expect(memcmp(before, after, sizeof before) == 0, "the input is not restored");
}

CPU_TEST(mistake, an_unsummed_broadcast_is_named)
{
    static const struct {
        int rank;
        int64_t dim[2];
    } shapes[] = {{1, {3}}, {2, {1, 3}}, {2, {4, 1}}, {2, {1, 1}}, {0, {0}}};
    for (int i = 0; i < 5; i++) {
        sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(4, 3)),
                          test_leaf(SB_F64, 2, shapes[i].rank, shapes[i].dim)};
        EXPECT_PASS(check(f_sum, 0, SUMMED, 2, x));
        EXPECT_MISTAKE(check(f_sum, 0, FIRST_ONLY, 2, x), "a broadcast is not summed");
        EXPECT_MISTAKE(check(f_sum, 0, LAST_ONLY, 2, x), "a broadcast is not summed");
    }
}
