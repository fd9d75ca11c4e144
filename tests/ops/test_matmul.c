#include "tests/support/compare.h"

typedef sb_tensor *(*matmul)(sb_tensor *a, sb_tensor *b);

static sb_tensor *nn(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul(x[0], x[1]);
}

static sb_tensor *nt(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul_nt(x[0], x[1]);
}

static sb_tensor *tn(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul_tn(x[0], x[1]);
}

/* (1 2; 3 4) times (5 6; 7 8), with one or the other transposed. */
TEST(matmul, two_by_two_give_the_hand_worked_products)
{
    TAPE(SB_RECORD);
    sb_tensor *a = owned(SB_F64, SB_SHAPE(2, 2), (double[]){1, 2, 3, 4});
    sb_tensor *b = owned(SB_F64, SB_SHAPE(2, 2), (double[]){5, 6, 7, 8});
    const double expected[3][4] = {{19, 22, 43, 50}, {17, 23, 39, 53}, {26, 30, 38, 44}};
    for (int i = 0; i < 4; i++) {
        cr_expect(sb_tensor_get(sb_matmul(a, b), i) == expected[0][i]);
        cr_expect(sb_tensor_get(sb_matmul_nt(a, b), i) == expected[1][i]);
        cr_expect(sb_tensor_get(sb_matmul_tn(a, b), i) == expected[2][i]);
    }
}

/* y = a b with dy = (1 0; 0 0): da = dy b' = (5 7; 0 0), db = a' dy = (1 0; 2 0). */
TEST(matmul, backward_gives_the_hand_worked_gradients)
{
    sb_tensor *a = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 2), (double[]){1, 2, 3, 4})));
    sb_tensor *b = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 2), (double[]){5, 6, 7, 8})));
    TAPE(SB_RECORD);
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(2, 2), (double[]){1, 0, 0, 0});
    MUST(sb_backward_from(sb_matmul(a, b), dy));
    const double da[] = {5, 7, 0, 0}, db[] = {1, 0, 2, 0};
    for (int i = 0; i < 4; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(a), i) == da[i] &&
                  sb_tensor_get(sb_tensor_grad(b), i) == db[i]);
}

/* The product of one batch, as defined: element (i, j) of op(a) op(b), from (rows, columns). */
static double element(const sb_tensor *a, int64_t at_a, bool transpose_a, const sb_tensor *b,
                      int64_t at_b, bool transpose_b, int64_t i, int64_t j)
{
    int64_t wide_a = sb_tensor_dim(a, -1), wide_b = sb_tensor_dim(b, -1);
    int64_t inner = sb_tensor_dim(a, transpose_a ? -2 : -1);
    double sum = 0;
    for (int64_t k = 0; k < inner; k++)
        sum += sb_tensor_get(a, at_a + (transpose_a ? k * wide_a + i : i * wide_a + k)) *
               sb_tensor_get(b, at_b + (transpose_b ? j * wide_b + k : k * wide_b + j));
    return sum;
}

/* Compares every element of op with the definition. */
static void expect_product(sb_function f, bool transpose_a, bool transpose_b, sb_mode mode,
                           const char *shapes)
{
    const struct inputs in = inputs_new(shapes, SB_F64, 3);
    sb_tensor *const *x = in.x;
    TAPE(mode);
    sb_tensor *y = MUST(f(NULL, x));
    int64_t m = sb_tensor_dim(y, -2), n = sb_tensor_dim(y, -1), stride_a[6], stride_b[6];
    shape_strides(x[0]->rank - 2, x[0]->dim, y->rank - 2, y->dim, stride_a);
    shape_strides(x[1]->rank - 2, x[1]->dim, y->rank - 2, y->dim, stride_b);
    double worst = 0;
    for (int64_t at = 0; at < sb_tensor_size(y); at++) {
        int64_t place = at / (m * n), batch_a = 0, batch_b = 0;
        for (int axis = y->rank - 3; axis >= 0; place /= y->dim[axis--]) {
            batch_a += place % y->dim[axis] * stride_a[axis];
            batch_b += place % y->dim[axis] * stride_b[axis];
        }
        int64_t size_a = sb_tensor_dim(x[0], -1) * sb_tensor_dim(x[0], -2);
        int64_t size_b = sb_tensor_dim(x[1], -1) * sb_tensor_dim(x[1], -2);
        double expected = element(x[0], batch_a * size_a, transpose_a, x[1], batch_b * size_b,
                                  transpose_b, at / n % m, at % n);
        worst = fmax(worst, fabs(sb_tensor_get(y, at) - expected));
    }
    cr_expect(worst < 1e-12, "\"%s\": off by %g", shapes, worst);
}

TEST(matmul, every_element_follows_the_definition)
{
    too_slow(EMULATED_SANITIZED, "it runs many cases of kernels that shorter tests run too");
    const char *const ab[] = {"1x1 1x1",         "2x7 7x1",          "63x64 64x65",
                              "2x3x4 4x5",       "3x4 2x4x5",        "2x1x2x3 4x3x2",
                              "1x3x2x3 2x1x3x4", "5x2x2x3 3x2",      "2x3x2x1x3x4 3x1x1x4x2",
                              "2x3x5x7 2x1x7x3", "40x16x16 40x16x9", "3x0 0x2"};
    const char *const ab_nt[] = {"1x1 1x1",   "2x7 1x7",       "63x64 65x64", "2x3x4 5x4",
                                 "3x4 2x5x4", "2x1x2x3 4x2x3", "5x2x2x3 4x3", "2x3x5x7 1x3x3x7"};
    const char *const ab_tn[] = {"1x1 1x1",   "7x2 7x1",       "64x63 64x65", "2x4x3 4x5",
                                 "4x3 2x4x5", "2x1x3x2 4x3x2", "5x2x3x2 3x4", "2x3x7x5 1x3x7x3"};
    for (sb_mode mode = SB_RECORD; mode <= SB_NO_RECORD; mode++) {
        for (size_t i = 0; i < sizeof ab / sizeof *ab; i++)
            expect_product(nn, false, false, mode, ab[i]);
        for (size_t i = 0; i < sizeof ab_nt / sizeof *ab_nt; i++)
            expect_product(nt, false, true, mode, ab_nt[i]);
        for (size_t i = 0; i < sizeof ab_tn / sizeof *ab_tn; i++)
            expect_product(tn, true, false, mode, ab_tn[i]);
    }
}

/* The same with both factors expanded to all batches. */
static sb_tensor *expanded(void *unused, sb_tensor *const x[])
{
    (void)unused;
    int rank;
    int64_t dim[SB_MAX_RANK];
    shape_broadcast(x[0]->rank - 2, x[0]->dim, x[1]->rank - 2, x[1]->dim, &rank, dim);
    dim[rank] = sb_tensor_dim(x[0], -2);
    dim[rank + 1] = sb_tensor_dim(x[0], -1);
    sb_tensor *a = sb_expand(x[0], rank + 2, dim);
    dim[rank] = sb_tensor_dim(x[1], -2);
    dim[rank + 1] = sb_tensor_dim(x[1], -1);
    return sb_matmul(a, sb_expand(x[1], rank + 2, dim));
}

TEST(matmul, broadcasting_is_a_product_of_expanded_batches)
{
    const char *const shapes[] = {"2x3x4 4x5",
                                  "3x4 2x4x5",
                                  "2x1x2x3 4x3x2",
                                  "1x3x2x3 2x1x3x4",
                                  "2x3x2x1x3x4 3x1x1x4x2",
                                  "2x3x5x7 2x1x7x3",
                                  "2x3x5x7 1x3x7x3",
                                  "40x16x16 40x16x9"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        expect_same_function(nn, expanded, shapes[i]);
}

static sb_tensor *nt_by_transpose(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul(x[0], sb_transpose(x[1], -1, -2));
}

static sb_tensor *tn_by_transpose(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul(sb_transpose(x[0], -1, -2), x[1]);
}

TEST(matmul, the_transposed_forms_are_a_transpose_and_a_product)
{
    const char *const ab_nt[] = {"2x7 3x7", "2x3x4 5x4", "3x4 2x5x4", "2x1x2x3 4x2x3",
                                 "2x4x3 2x4x3"};
    const char *const ab_tn[] = {"7x2 7x3", "2x4x3 4x5", "4x3 2x4x5", "2x1x3x2 4x3x2",
                                 "2x4x3 2x4x3"};
    for (int i = 0; i < 5; i++) {
        expect_same_function(nt, nt_by_transpose, ab_nt[i]);
        expect_same_function(tn, tn_by_transpose, ab_tn[i]);
    }
}

/* A single product for all batches must give the same as one product for each. */
static sb_tensor *one_by_one(void *unused, sb_tensor *const x[])
{
    (void)unused;
    sb_tensor *y[5];
    for (int i = 0; i < 5; i++)
        y[i] = sb_matmul(sb_reshape(sb_slice(x[0], 0, i, 1), SB_SHAPE(3, 4)), x[1]);
    return sb_stack(y, 5, 0);
}

TEST(matmul, a_shared_b_gives_the_product_of_each_batch)
{
    expect_same_function(nn, one_by_one, "5x3x4 4x2");
}

static sb_tensor *square(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul(x[0], x[0]);
}

static sb_tensor *square_of_two(void *unused, sb_tensor *const x[])
{
    (void)unused;
    return sb_matmul(x[0], sb_scale(x[0], 1));
}

TEST(matmul, one_tensor_may_be_both_factors)
{
    expect_same_function(square, square_of_two, "3x3");
    expect_same_function(square, square_of_two, "2x4x4");
}

TEST(matmul, an_empty_sum_is_zero)
{
    const struct inputs in = inputs_new("0x2x3 3x2", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    sb_tensor *y = sb_matmul(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 0))),
                             sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3))));
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(y, i) == 0);
    sb_tensor *dy = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 2, 2)));
    MUST(sb_backward_from(sb_matmul(x[0], x[1]), dy));
    for (int i = 0; i < 6; i++)
        cr_expect(sb_tensor_get(sb_tensor_grad(x[1]), i) == 0);
}

TEST(matmul, a_nan_or_an_infinity_propagates)
{
    TAPE(SB_RECORD);
    for (int place = 0; place < 9; place++) {
        double a[9] = {0}, zero[9] = {0};
        a[place] = NAN;
        sb_tensor *x = owned(SB_F32, SB_SHAPE(3, 3), a);
        sb_tensor *z = owned(SB_F32, SB_SHAPE(3, 3), zero);
        cr_expect(isnan(sb_tensor_get(sb_matmul(x, z), place / 3 * 3)));
        cr_expect(isnan(sb_tensor_get(sb_matmul(z, x), place % 3)));
        a[place] = INFINITY; /* 0 times infinity */
        x = owned(SB_F32, SB_SHAPE(3, 3), a);
        cr_expect(isnan(sb_tensor_get(sb_matmul(x, z), place / 3 * 3)));
    }
}

/* Numbers in -2..2. */
static sb_tensor *whole_numbers(uint64_t seed, int64_t rows, int64_t columns)
{
    sb_tensor *x = test_leaf(SB_F64, seed, SB_SHAPE(rows, columns));
    double *values = test_data(x);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (int)(10 * values[i]) % 3;
    return sb_tape_own(sb_tensor_from_doubles(SB_F32, SB_SHAPE(rows, columns), values));
}

/* Every n-th row of one product of m rows, against the row alone, as in decoding. */
static void expect_rows_alone(matmul f, bool transpose_b, int64_t m, int64_t n, int64_t k,
                              int64_t every)
{
    TAPE_WITH(SB_NO_RECORD, &(sb_context){.batch_invariant = true});
    sb_tensor *a = test_leaf(SB_F32, 1, SB_SHAPE(m, k));
    sb_tensor *b =
        transpose_b ? test_leaf(SB_F32, 2, SB_SHAPE(n, k)) : test_leaf(SB_F32, 2, SB_SHAPE(k, n));
    sb_tensor *all = f(a, b);
    for (int64_t i = 0; i < m; i += every)
        cr_expect(test_same_bits(f(sb_slice(a, 0, i, 1), b), sb_slice(all, 0, i, 1)),
                  "row %d of %dx%dx%d: %s", (int)i, (int)m, (int)n, (int)k, sb_error());
}

TEST(matmul, in_decoding_a_row_does_not_depend_on_the_others)
{
    enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        if (test_kernel_set(set)) {
            expect_rows_alone(sb_matmul, false, 37, 33, 65, 1);
            expect_rows_alone(sb_matmul_nt, true, 37, 33, 65, 1);
        }
    kernel_use_cpu_set(usual);
}

/* A GPU has tiles of several sizes, and kernels that read 16 bytes at a time. */
TEST(matmul, no_tile_shows_in_the_bits)
{
    static const int64_t rows[] = {16, 33, 70, 130};
    enum { M = 11, N = 37, K = 580 }; /* 9 parts and 4 terms more */
    device_needed();
    sb_use_device(device_cuda());
    for (int i = 0; i < 4 * 2; i++) {
        expect_rows_alone(sb_matmul_nt, true, rows[i / 2], 1032, i % 2 ? 72 : 137, 23);
        expect_rows_alone(sb_matmul, false, rows[i / 2], 1032, i % 2 ? 72 : 137, 23);
    }
    sb_tape tape;
    sb_tape_begin_with(&tape, SB_NO_RECORD, &(sb_context){.batch_invariant = true});
    sb_tensor *a = test_leaf(SB_F32, 1, SB_SHAPE(M, K));
    sb_tensor *b = test_leaf(SB_F32, 2, SB_SHAPE(N, K));
    sb_tensor *vectors = sb_matmul_nt(a, b);
    sb_tensor *strips = sb_matmul(a, sb_transpose(b, 0, 1));
    cr_expect(vectors && strips && test_same_bits(vectors, strips), "%s", sb_error());
    sb_tape_end(&tape);
    sb_use_device(NULL);
}

/* Whole numbers, whose sums are exact: by BLAS, and as in decoding by each tile of a GPU. */
TEST(matmul, every_layout_and_tile_is_right)
{
    static const int64_t sizes[][3] = {
        {16, 40, 64}, {70, 136, 72}, {136, 264, 72}, {200, 1032, 24}, {73, 1025, 19}};
    static const matmul of[] = {sb_matmul, sb_matmul_nt, sb_matmul_tn};
    for (int i = 0; i < 5 * 3; i++) {
        const int64_t m = sizes[i / 3][0], n = sizes[i / 3][1], k = sizes[i / 3][2];
        const int kind = i % 3;
        sb_tape blas, decoding;
        sb_tape_begin(&blas, SB_RECORD);
        sb_tensor *a = whole_numbers(1, kind == 2 ? k : m, kind == 2 ? m : k);
        sb_tensor *b = whole_numbers(2, kind == 1 ? n : k, kind == 1 ? k : n);
        sb_tensor *y = of[kind](a, b);
        sb_tape_begin_with(&decoding, SB_NO_RECORD, &(sb_context){.batch_invariant = true});
        sb_tensor *z = of[kind](a, b);
        cr_expect(y && z && test_same_bits(y, z), "kind %d, %dx%dx%d", kind, (int)m, (int)n,
                  (int)k);
        sb_tape_end(&decoding);
        sb_tape_end(&blas);
    }
}

CPU_TEST(matmul, results_have_the_same_bits_for_any_number_of_threads)
{
    int usual = sb_threads();
    sb_tensor *dx[2][2], *y[2];
    const struct inputs in = inputs_new("40x33x17 1x17x29", SB_F32, 1);
    sb_tensor *const *x = in.x;
    for (int i = 0; i < 2; i++) {
        cr_assert(sb_set_threads(i == 0 ? 1 : 3));
        y[i] = run_with_gradients(nn, x, 2, dx[i]);
    }
    sb_set_threads(usual);
    cr_expect(test_same_bits(y[0], y[1]));
    for (int i = 0; i < 2; i++) {
        cr_expect(test_same_bits(dx[0][i], dx[1][i]));
    }
}
