#include "tests/support/compare.h"

TEST(embedding, ids_choose_rows_of_the_table)
{
    TAPE(SB_RECORD);
    sb_tensor *table = owned(SB_F32, SB_SHAPE(3, 2), (double[]){0, 1, 10, 11, 20, 21});
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(2, 2), (double[]){2, 0, 2, 1});
    sb_tensor *y = MUST(sb_embedding(table, ids));
    cr_expect(sb_tensor_rank(y) == 3 && sb_tensor_dim(y, 0) == 2 && sb_tensor_dim(y, 1) == 2 &&
              sb_tensor_dim(y, 2) == 2);
    const double expected[] = {20, 21, 0, 1, 20, 21, 10, 11};
    for (int i = 0; i < 8; i++)
        cr_expect(sb_tensor_get(y, i) == expected[i]);
}

TEST(embedding, backward_sums_the_rows_of_each_id)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2))));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(3), (double[]){2, 0, 2});
    sb_tensor *dy = owned(SB_F32, SB_SHAPE(3, 2), (double[]){1, 2, 30, 40, 500, 600});
    MUST(sb_backward_from(sb_embedding(table, ids), dy));
    const double expected[] = {30, 40, 0, 0, 501, 602};
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(table), i) == expected[i]);
}

TEST(embedding, the_row_of_padding_gets_no_gradient)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F32, SB_SHAPE(3, 2), (double[]){0, 1, 10, 11, 20, 21})));
    TAPE(SB_RECORD);
    sb_tensor *ids = owned(SB_I32, SB_SHAPE(4), (double[]){2, 0, 2, 1});
    sb_tensor *dy = owned(SB_F32, SB_SHAPE(4, 2), (double[]){1, 2, 30, 40, 500, 600, 7, 8});
    sb_tensor *y = sb_keep(sb_embedding_padded(table, ids, 2));
    MUST(sb_backward_from(y, dy));
    cr_expect(sb_tensor_get(y, 0) == 20 && sb_tensor_get(y, 7) == 11);
    const double expected[] = {30, 40, 7, 8, 0, 0};
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(table), i) == expected[i]);
}

static sb_tensor *padded(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_embedding_padded(x[0], x[1], 3);
}

/* Row 3 of the table as a constant: what differences see of it is cut off. */
static sb_tensor *padded_composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *is_padding =
        sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(sb_tensor_dim(x[0], 0), 1)));
    sb_tensor_set(is_padding, 3, 1);
    return sb_embedding(sb_where(is_padding, sb_detach(x[0]), x[0]), x[1]);
}

TEST(embedding, padding_is_a_row_without_a_gradient)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    const char *const shapes[] = {"5x7 i5:2x3", "4x65 i4:40", "5x2 i5:5000"};
    for (int i = 0; i < 3; i++)
        expect_same_function(padded, padded_composed, shapes[i]);
}

/* In f32, (1e8 + 1) - 1e8 is 0 but (1e8 - 1e8) + 1 is 1: the sum depends on the order. */
TEST(embedding, backward_adds_in_the_order_of_the_ids_for_any_number_of_threads)
{
    enum { C = 100, N = 1500 };
    int usual = sb_threads();
    for (int threads = 1; threads <= 4; threads++) {
        cr_assert(sb_set_threads(threads));
        sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, C))));
        TAPE(SB_RECORD);
        sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(N)));
        sb_tensor *dy = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(N, C)));
        const double parts[] = {1e8, 1, -1e8};
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < C; c++)
                sb_tensor_set(dy, i * 700 * C + c, parts[i]);
        MUST(sb_backward_from(sb_embedding(table, ids), dy));
        for (int c = 0; c < C; c++)
            cr_expect(sb_tensor_get(sb_tensor_grad(table), c) == 0 &&
                      sb_tensor_get(sb_tensor_grad(table), C + c) == 0);
    }
    sb_set_threads(usual);
}

static sb_tensor *fused(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_embedding(x[0], x[1]);
}

/* The same as a product of one-hot rows with the table. */
static sb_tensor *composed(void *unused, sb_tensor *const x[])
{
    (void)unused;
    int64_t n = sb_tensor_size(x[1]), V = sb_tensor_dim(x[0], 0);
    sb_tensor *one_hot = sb_tape_own(sb_tensor_zeros(SB_F64, SB_SHAPE(n, V)));
    for (int64_t i = 0; i < n; i++)
        sb_tensor_set(one_hot, i * V + (int64_t)sb_tensor_get(x[1], i), 1);
    return sb_matmul(one_hot, x[0]);
}

TEST(embedding, it_is_a_product_with_one_hot_rows)
{
    const char *const shapes[] = {"1x1 i1:1", "7x2 i7:30", "5x63 i5:4", "3x64 i3:7", "9x65 i9:65"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(fused, composed, shapes[i]);
}

TEST(embedding, no_ids_give_an_empty_result)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *table = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2)));
    sb_tensor *y = sb_embedding(table, sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(4, 0))));
    cr_expect(sb_tensor_rank(y) == 3 && sb_tensor_size(y) == 0);
}

CPU_TEST(embedding, an_id_outside_the_table_is_named)
{
    for (int bad = 0; bad < 3; bad++) {
        FAILED_TAPE(SB_RECORD);
        sb_tensor *table = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(10, 2)));
        sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(1500, 3)));
        sb_tensor_set(ids, 1200 * 3 + 2, (const double[]){-1, 10, INT32_MAX}[bad]);
        sb_tensor_set(ids, 1200 * 3 + 3, 99);
        cr_expect(!sb_embedding(table, ids));
        EXPECT_ERROR("embedding: id ");
        EXPECT_ERROR(((const char *[]){"id -1 at (1200, 2)", "id 10 at (1200, 2)",
                                       "id 2147483647 at (1200, 2)"}[bad]));
        EXPECT_ERROR("of ids (1500, 3) is not in 0..9");
    }
}

CPU_TEST(embedding, ids_that_change_before_backward_are_found)
{
    sb_tensor *table = KEPT(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 2))));
    FAILED_TAPE(SB_RECORD);
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(4)));
    sb_tensor *y = sb_embedding(table, ids);
    ((int32_t *)sb_tensor_data(ids))[3] = 3; /* unnoticed */
    cr_expect(!sb_backward_from(y, sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(4, 2)))));
    EXPECT_ERROR("embedding: id 3 at (3)");
}
