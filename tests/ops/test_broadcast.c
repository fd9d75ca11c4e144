/* Long traversals by ops/broadcast.c and ops/cpu/broadcast.h, compared with plain loops over
   indices. */
#include "ops/broadcast.h"
#include "ops/kernel.h"
#include "tests/support/values.h"

CPU_TEST(broadcast, contiguous_axes_are_merged)
{
    const sb_tensor y = {.rank = 4, .dim = {2, 3, 1, 5}}, bias = {.rank = 1, .dim = {5}};
    const sb_tensor column = {.rank = 4, .dim = {2, 3, 1, 1}}, scalar = {.rank = 0};
    struct broadcast plan = broadcast_plan(2, (const sb_tensor *[]){&y, &y});
    cr_expect(plan.rank == 1 && plan.dim[0] == 30 && plan.stride[1][0] == 1);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &bias});
    cr_expect(plan.rank == 2 && plan.dim[0] == 6 && plan.dim[1] == 5);
    cr_expect(plan.stride[1][0] == 0 && plan.stride[1][1] == 1);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &column});
    cr_expect(plan.rank == 2 && plan.stride[1][0] == 1 && plan.stride[1][1] == 0);
    plan = broadcast_plan(2, (const sb_tensor *[]){&y, &scalar});
    cr_expect(plan.rank == 1 && plan.dim[0] == 30 && plan.stride[1][0] == 0);
    plan = broadcast_plan(2, (const sb_tensor *[]){&scalar, &scalar});
    cr_expect(plan.rank == 1 && plan.dim[0] == 1 && plan.stride[1][0] == 1);
}

/* The element of t that the index tuple of y's shape reads. */
static int64_t place(const sb_tensor *y, const sb_tensor *t, int64_t index)
{
    int64_t at = 0, step = 1;
    for (int i = 1; i <= y->rank; i++) {
        const int64_t size = y->dim[y->rank - i], j = index % size;
        index /= size;
        if (i > t->rank)
            continue;
        at += t->dim[t->rank - i] == 1 ? 0 : j * step;
        step *= t->dim[t->rank - i];
    }
    return at;
}

/* Frees dx. */
static void expect_gradient(const sb_tensor *x, double *dx, const sb_tensor *a, const sb_tensor *b)
{
    double *got = numbers_of(sb_tensor_grad(x));
    const double error = test_relative_arrays(sb_tensor_size(x), got, dx);
    cr_expect(error < 3e-7, "the gradient of %s, from %s times %s, differs by %g",
              tensor_shape(x).text, tensor_shape(a).text, tensor_shape(b).text, error);
}

/* y = a b, with dy = y: da = sum of a b^2 if a is broadcast. */
static void check_product(sb_tensor *a, sb_tensor *b)
{
    TAPE(SB_RECORD);
    sb_tensor_clear_grad(a);
    sb_tensor_clear_grad(b);
    sb_tensor *y = sb_keep(sb_multiply(a, b));
    MUST(sb_backward(sb_scale(sb_sum(sb_multiply(y, y), SB_ALL, false), 0.5)));
    double *value = numbers_of(y), *value_a = numbers_of(a), *value_b = numbers_of(b);
    double *da = calloc(sb_tensor_size(a), sizeof *da), *db = calloc(sb_tensor_size(b), sizeof *db);
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        const int64_t at_a = place(y, a, i), at_b = place(y, b, i);
        cr_assert(fabs(value[i] - value_a[at_a] * value_b[at_b]) < 1e-6, "y at %lld", (long long)i);
        da[at_a] += value_a[at_a] * value_b[at_b] * value_b[at_b];
        db[at_b] += value_a[at_a] * value_a[at_a] * value_b[at_b];
    }
    expect_gradient(a, da, a, b);
    expect_gradient(b, db, a, b);
}

/* Shapes that cross strips, column blocks, slabs and threads. */
static const struct {
    int rank_a;
    int64_t a[4];
    int rank_b;
    int64_t b[4];
} shapes[] = {
    {1, {1537}, 1, {1537}},       {2, {70, 600}, 1, {600}},
    {2, {5, 9001}, 1, {9001}},    {1, {40000}, 0, {0}},
    {2, {600, 70}, 2, {600, 1}},  {2, {3, 12000}, 2, {3, 1}},
    {3, {7, 1, 65}, 2, {80, 1}},  {4, {3, 1, 40, 9}, 3, {5, 1, 9}},
    {2, {1200, 1}, 1, {33}},      {4, {2, 30, 1, 20}, 3, {1, 31, 1}},
    {3, {130, 1, 3}, 2, {90, 1}},
};

TEST(broadcast, long_tensors_agree_with_plain_loops_in_every_instruction_set)
{
    const enum kernel_set best = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= best; set++) {
        if (!test_kernel_set(set))
            continue;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            sb_tensor *a = test_leaf(SB_F32, 2 * i, shapes[i].rank_a, shapes[i].a);
            sb_tensor *b = test_leaf(SB_F32, 2 * i + 1, shapes[i].rank_b, shapes[i].b);
            check_product(a, b);
        }
    }
}

CPU_TEST(broadcast, sums_have_the_same_bits_for_any_number_of_threads)
{
    const int threads = sb_threads();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sb_tensor *a = test_leaf(SB_F32, 1, shapes[i].rank_a, shapes[i].a);
        sb_tensor *b = test_leaf(SB_F32, 2, shapes[i].rank_b, shapes[i].b);
        sb_tensor *first = NULL;
        for (int t = 1; t <= 4; t++) {
            sb_set_threads(t);
            sb_tape tape;
            sb_tape_begin(&tape, SB_RECORD);
            sb_tensor_clear_grad(b);
            MUST(sb_backward(sb_sum(sb_divide(a, b), SB_ALL, false)));
            sb_tape_end(&tape);
            if (!first)
                first = retained(sb_tensor_grad(b));
            cr_expect(test_same_bits(first, sb_tensor_grad(b)));
        }
    }
    sb_set_threads(threads);
}

/* The sum is accumulated in float64: in float32 the small terms would be lost. */
TEST(broadcast, a_sum_of_a_million_floats_is_right_to_the_last_bit)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_F32, SB_SHAPE(1000, 1000), (float)0.1));
    const float exact = (float)((double)(float)0.1 * 1e6);
    cr_expect(sb_tensor_get(sb_sum(x, SB_ALL, false), 0) == exact);
    sb_tensor *rows = sb_sum(x, 0, false);
    cr_expect(sb_tensor_get(rows, 999) == (float)((double)(float)0.1 * 1000));
}
