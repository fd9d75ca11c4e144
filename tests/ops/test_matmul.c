/* Products of matrices: the operation, and the kernels behind it. */
#include "ops/gemm.h"
#include "tests/support/compare.h"
#include <pthread.h>
#include <stdio.h>

typedef sb_tensor *(*matmul)(sb_tensor *a, sb_tensor *b);

FUNCTION(nn, sb_matmul(x[0], x[1]))
FUNCTION(nt, sb_matmul_nt(x[0], x[1]))
FUNCTION(tn, sb_matmul_tn(x[0], x[1]))

/* (1 2; 3 4) times (5 6; 7 8), with one or the other transposed. */
TEST(matmul, two_by_two_give_the_hand_worked_products)
{
    TAPE(SB_RECORD);
    sb_tensor *a = owned(SB_F64, SB_SHAPE(2, 2), (double[]){1, 2, 3, 4});
    sb_tensor *b = owned(SB_F64, SB_SHAPE(2, 2), (double[]){5, 6, 7, 8});
    expect_exact_numbers(sb_matmul(a, b), NUMBERS(19, 22, 43, 50));
    expect_exact_numbers(sb_matmul_nt(a, b), NUMBERS(17, 23, 39, 53));
    expect_exact_numbers(sb_matmul_tn(a, b), NUMBERS(26, 30, 38, 44));
}

/* y = a b with dy = (1 0; 0 0): da = dy b' = (5 7; 0 0), db = a' dy = (1 0; 2 0). */
TEST(matmul, backward_gives_the_hand_worked_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *a = leaf(SB_SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
    sb_tensor *b = leaf(SB_SHAPE(2, 2), NUMBERS(5, 6, 7, 8));
    sb_tensor *dy = owned(SB_F64, SB_SHAPE(2, 2), (double[]){1, 0, 0, 0});
    MUST(sb_backward_from(sb_matmul(a, b), dy));
    expect_exact_numbers(sb_tensor_grad(a), NUMBERS(5, 7, 0, 0));
    expect_exact_numbers(sb_tensor_grad(b), NUMBERS(1, 0, 2, 0));
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

TEST(matmul, every_element_follows_the_definition, MANY_CASES)
{
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
FUNCTION_HEAD(expanded)
{
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
    EXPECT_SAME_FUNCTION(nn, expanded, "2x3x4 4x5", "3x4 2x4x5", "2x1x2x3 4x3x2", "1x3x2x3 2x1x3x4",
                         "2x3x2x1x3x4 3x1x1x4x2", "2x3x5x7 2x1x7x3", "2x3x5x7 1x3x7x3",
                         "40x16x16 40x16x9");
}

FUNCTION(nt_by_transpose, sb_matmul(x[0], sb_transpose(x[1], -1, -2)))
FUNCTION(tn_by_transpose, sb_matmul(sb_transpose(x[0], -1, -2), x[1]))

TEST(matmul, the_transposed_forms_are_a_transpose_and_a_product)
{
    EXPECT_SAME_FUNCTION(nt, nt_by_transpose, "2x7 3x7", "2x3x4 5x4", "3x4 2x5x4", "2x1x2x3 4x2x3",
                         "2x4x3 2x4x3");
    EXPECT_SAME_FUNCTION(tn, tn_by_transpose, "7x2 7x3", "2x4x3 4x5", "4x3 2x4x5", "2x1x3x2 4x3x2",
                         "2x4x3 2x4x3");
}

/* A single product for all batches must give the same as one product for each. */
FUNCTION_HEAD(one_by_one)
{
    sb_tensor *y[5];
    for (int i = 0; i < 5; i++)
        y[i] = sb_matmul(sb_reshape(sb_slice(x[0], 0, i, 1), SB_SHAPE(3, 4)), x[1]);
    return sb_stack(y, 5, 0);
}

TEST(matmul, a_shared_b_gives_the_product_of_each_batch)
{
    expect_same_function(nn, one_by_one, "5x3x4 4x2");
}

FUNCTION(square, sb_matmul(x[0], x[0]))
FUNCTION(square_of_two, sb_matmul(x[0], sb_scale(x[0], 1)))

TEST(matmul, one_tensor_may_be_both_factors)
{
    EXPECT_SAME_FUNCTION(square, square_of_two, "3x3", "2x4x4");
}

TEST(matmul, an_empty_sum_is_zero)
{
    const struct inputs in = inputs_new("0x2x3 3x2", SB_F32, 1);
    sb_tensor *const *x = in.x;
    TAPE(SB_RECORD);
    sb_tensor *y = sb_matmul(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 0))),
                             sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 3))));
    cr_expect(largest_of(y) == 0);
    sb_tensor *dy = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(0, 2, 2)));
    MUST(sb_backward_from(sb_matmul(x[0], x[1]), dy));
    cr_expect(largest_of(sb_tensor_grad(x[1])) == 0);
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
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);) {
        expect_rows_alone(sb_matmul, false, 37, 33, 65, 1);
        expect_rows_alone(sb_matmul_nt, true, 37, 33, 65, 1);
    }
}

/* A GPU has tiles of several sizes, and kernels that read 16 bytes at a time. */
TEST(matmul, no_tile_shows_in_the_bits)
{
    static const int64_t rows[] = {16, 33, 70, 130};
    enum { M = 11, N = 37, K = 580 }; /* 9 parts and 4 terms more */
    device_needed();
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
    for (int i = 0; i < 2; i++)
        cr_expect(test_same_bits(dx[0][i], dx[1][i]));
}

/*
 * Products of bf16, which a GPU computes on tensor cores. In decoding its own kernel does it, with
 * one of four tiles, by the size; none of them may show in the bits.
 */

static const sb_context decoding = {.batch_invariant = true};

static const struct product {
    matmul f;
    bool transpose_a, transpose_b;
} products[] = {
    {sb_matmul, false, false}, {sb_matmul_nt, false, true}, {sb_matmul_tn, true, false}};

enum { PRODUCTS = 3 };

/* A tensor of whole numbers in -4..4, whose sums are exact. */
static sb_tensor *bf16_whole_numbers(uint64_t seed, int rank, const int64_t *dim)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    sb_tensor *t = sb_tape_own(sb_tensor_zeros(SB_BF16, rank, dim));
    double *numbers = numbers_of(t);
    for (int64_t i = 0; i < sb_tensor_size(t); i++)
        numbers[i] = floor(9 * sb_random_uniform(&random)) - 4;
    MUST(sb_tensor_write(t, numbers));
    return t;
}

static double rounded(double x)
{
    return (double)sb_bf16_widen(sb_bf16_round((float)x));
}

/* B products (m, k) by (k, n). */
static void expect_sums(const struct product *p, sb_mode mode, int64_t B, int64_t m, int64_t n,
                        int64_t k)
{
    TAPE_WITH(mode, &decoding);
    sb_tensor *a =
        bf16_whole_numbers(1, SB_SHAPE(B, p->transpose_a ? k : m, p->transpose_a ? m : k));
    sb_tensor *b =
        bf16_whole_numbers(2, SB_SHAPE(B, p->transpose_b ? n : k, p->transpose_b ? k : n));
    sb_tensor *y = MUST(p->f(a, b));
    double *as = numbers_of(a), *bs = numbers_of(b), *ys = numbers_of(y);
    for (int64_t at = 0; at < B * m * n; at++) {
        const int64_t z = at / n / m, i = at / n % m, j = at % n;
        double sum = 0;
        for (int64_t l = 0; l < k; l++)
            sum += as[z * m * k + (p->transpose_a ? l * m + i : i * k + l)] *
                   bs[z * k * n + (p->transpose_b ? j * k + l : l * n + j)];
        cr_assert(ys[at] == rounded(sum),
                  "product %d, mode %d: element (%d, %d) of %dx%dx%d is %g, not %g",
                  (int)(p - products), (int)mode, (int)i, (int)j, (int)m, (int)n, (int)k, ys[at],
                  rounded(sum));
    }
}

TEST(matmul_bf16, sums_of_whole_numbers_are_exact_and_rounded_once)
{
    static const int64_t shapes[][4] = {
        {1, 1, 1, 1},
        {1, 3, 2, 0},
        {1, 1, 7, 8},
        {2, 3, 33, 16},
        {1, 16, 32, 64},
        {1, 17, 5, 72},
        {1, 33, 65, 40},
        {2, 40, 31, 7},
        {1, 70, 66, 90},
        {3, 2, 2, 200},
        /* in the emulator, with the small, the wide and the large tile, aligned in all layouts */
        {1, 72, 136, 80},
        {1, 136, 200, 72},
        {1, 136, 264, 136}};
    for (int i = 0; i < PRODUCTS; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (sb_mode mode = SB_RECORD; mode <= SB_NO_RECORD; mode++)
                expect_sums(&products[i], mode, shapes[s][0], shapes[s][1], shapes[s][2],
                            shapes[s][3]);
}

/* Rows first .. first + count - 1 alone, without recording, against the product of all. */
static void bf16_expect_rows_alone(matmul f, sb_tensor *a, sb_tensor *b, const double *all,
                                   int64_t first, int64_t count)
{
    sb_tensor *y = MUST(f(sb_slice(a, 0, first, count), b));
    const int64_t n = sb_tensor_dim(y, 1);
    double *alone = numbers_of(y);
    cr_expect(memcmp(alone, all + first * n, (size_t)(count * n) * sizeof *alone) == 0,
              "rows %d to %d of %d, %d columns", (int)first, (int)(first + count - 1),
              (int)sb_tensor_dim(a, 0), (int)n);
}

static void expect_no_batch(const struct product *p, int64_t m, int64_t n, int64_t k)
{
    TAPE_WITH(SB_NO_RECORD, &decoding);
    sb_tensor *a = test_leaf(SB_BF16, 1, SB_SHAPE(m, k));
    sb_tensor *b = p->transpose_b ? test_leaf(SB_BF16, 2, SB_SHAPE(n, k))
                                  : test_leaf(SB_BF16, 2, SB_SHAPE(k, n));
    double *all = numbers_of(p->f(a, b));
    bf16_expect_rows_alone(p->f, a, b, all, 0, 1);
    bf16_expect_rows_alone(p->f, a, b, all, m - 1, 1);
    bf16_expect_rows_alone(p->f, a, b, all, m / 3, m / 2);
}

/* The last ones have enough tiles for the large tile: 130 rows, and then 65 and one with others. */
TEST(matmul_bf16, in_decoding_a_row_does_not_depend_on_the_others)
{
    for (int i = 0; i < 2; i++)
        for (int64_t k = 63; k < 66; k++) {
            expect_no_batch(&products[i], 20, 33, k);
            expect_no_batch(&products[i], 77, 40, k);
        }
    expect_no_batch(&products[1], 130, 8200, 24);
}

/* The bias is added before rounding: sums of 256 and above lose 1 in bf16. */
TEST(matmul_bf16, a_bias_is_added_to_the_sum_before_it_is_rounded)
{
    enum { ROWS = 18, IN = 24, OUT = 40 };
    TAPE_WITH(SB_NO_RECORD, &decoding);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(ROWS, IN), 1));
    sb_tensor *weight = sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(OUT, IN), 1.0 / 8));
    sb_tensor *bias = sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(OUT), 256));
    sb_tensor *y = sb_linear(x, weight, bias); /* 3 + 256 */
    for (int64_t i = 0; i < ROWS * OUT; i++)
        cr_expect(sb_tensor_get(y, i) == rounded(259), "%g", sb_tensor_get(y, i));
}

/* ---- gemm ---- */

enum { PARALLEL, SERIAL, BUILTIN, WAYS };

/* A product of one dtype; elements are stored as f32 or f64 and looked at as doubles. */
struct gemm_product {
    sb_dtype dtype;
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc;
    void *a, *b, *c;
};

static double get(const struct gemm_product *p, const void *x, int64_t i)
{
    return p->dtype == SB_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void put(const struct gemm_product *p, void *x, int64_t i, double value)
{
    if (p->dtype == SB_F32)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

static uint64_t state = 1;

/* Whole numbers in -4..4, whose products and sums are exact in any order, or any numbers. */
static double number(bool whole)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = (double)(state >> 40) / (1 << 24);
    return whole ? floor(9 * unit) - 4 : 2 * unit - 1;
}

static void *numbers(const struct gemm_product *p, int64_t count, bool whole)
{
    void *x = KEPT(calloc((size_t)count + 1, sizeof(double)));
    for (int64_t i = 0; i < count; i++)
        put(p, x, i, number(whole));
    return x;
}

/* Rows are a few elements longer than necessary. */
static struct gemm_product product_new(sb_dtype dtype, int transposes, int64_t m, int64_t n,
                                       int64_t k, int64_t spare, bool whole)
{
    struct gemm_product p = {.dtype = dtype,
                             .transpose_a = transposes & 1,
                             .transpose_b = transposes & 2,
                             .m = m,
                             .n = n,
                             .k = k};
    p.lda = (p.transpose_a ? m : k) + spare;
    p.ldb = (p.transpose_b ? k : n) + spare;
    p.ldc = n + spare;
    p.a = numbers(&p, (p.transpose_a ? k : m) * p.lda, whole);
    p.b = numbers(&p, (p.transpose_b ? n : k) * p.ldb, whole);
    p.c = numbers(&p, m * p.ldc, whole);
    return p;
}

static double element_a(const struct gemm_product *p, int64_t i, int64_t l)
{
    return get(p, p->a, p->transpose_a ? l * p->lda + i : i * p->lda + l);
}

static double element_b(const struct gemm_product *p, int64_t l, int64_t j)
{
    return get(p, p->b, p->transpose_b ? j * p->ldb + l : l * p->ldb + j);
}

static bool run(const struct gemm_product *p, enum kernel_set set, int way, double beta, void *c)
{
    const struct gemm_kernels *kernels = gemm_rows.row[set][p->dtype];
    gemm_function *gemm = way == PARALLEL ? kernels->parallel
                          : way == SERIAL ? kernels->serial
                                          : kernels->builtin;
    return gemm(p->transpose_a, p->transpose_b, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, beta,
                c, p->ldc);
}

static size_t bytes_c(const struct gemm_product *p)
{
    return (size_t)(p->m * p->ldc) * (p->dtype == SB_F32 ? sizeof(float) : sizeof(double));
}

/* C after one product that starts from p->c, or from NaN where it must not be read. */
static void *result(const struct gemm_product *p, enum kernel_set set, int way, double beta)
{
    void *c = KEPT(malloc(bytes_c(p) + 1));
    memcpy(c, p->c, bytes_c(p));
    for (int64_t i = 0; beta == 0 && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            put(p, c, i * p->ldc + j, NAN);
    cr_assert(run(p, set, way, beta, c));
    return c;
}

static void expect_exact(const struct gemm_product *p, enum kernel_set set, int way, double beta,
                         const double *sums)
{
    void *c = result(p, set, way, beta);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->ldc; j++) {
            double before = get(p, p->c, i * p->ldc + j);
            double expected = j < p->n ? sums[i * p->n + j] + beta * before : before;
            cr_assert(get(p, c, i * p->ldc + j) == expected,
                      "C(%d, %d) of %dx%dx%d (%c%c, %s, set %d, way %d, beta %g) is %g, not %g",
                      (int)i, (int)j, (int)p->m, (int)p->n, (int)p->k, p->transpose_a ? 't' : 'n',
                      p->transpose_b ? 't' : 'n', sb_dtype_name(p->dtype), (int)set, way, beta,
                      get(p, c, i * p->ldc + j), expected);
        }
}

static void expect_exact_everywhere(sb_dtype dtype, int transposes, int64_t m, int64_t n, int64_t k)
{
    struct gemm_product p = product_new(dtype, transposes, m, n, k, m % 3 + n % 2, true);
    double *sums = KEPT(calloc((size_t)(m * n) + 1, sizeof *sums));
    cr_assert(sums);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                sums[i * n + j] += element_a(&p, i, l) * element_b(&p, l, j);
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int way = 0; way < WAYS; way++) {
            expect_exact(&p, s.set, way, 0, sums);
            expect_exact(&p, s.set, way, transposes % 2 ? 0.5 : 1, sums);
        }
}

static const int64_t shapes[][3] = {
    {1, 1, 1},      {1, 2, 7},       {2, 1, 65},     {7, 7, 1},    {1, 64, 64},   {2, 63, 65},
    {3, 65, 63},    {4, 32, 64},     {4, 33, 5},     {5, 64, 7},   {7, 2, 64},    {8, 48, 33},
    {8, 7, 2},      {9, 100, 3},     {15, 16, 17},   {16, 130, 9}, {17, 31, 255}, {63, 64, 65},
    {64, 65, 63},   {65, 63, 64},    {64, 64, 256},  {6, 12, 257}, {1, 70, 300},  {3, 40, 520},
    {140, 9, 11},   {13, 800, 5},    {270, 40, 4},   {64, 1, 64},  {1, 33, 1},    {12, 24, 600},
    {1100, 20, 30}, {257, 128, 270}, {331, 192, 20},
};

CPU_TEST(gemm, products_of_whole_numbers_are_exact)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (int wide = 0; wide < 2; wide++)
                expect_exact_everywhere(wide ? SB_F64 : SB_F32, transposes, shapes[i][0],
                                        shapes[i][1], shapes[i][2]);
}

CPU_TEST(gemm, empty_products_leave_beta_c)
{
    const int64_t empty[][3] = {{0, 3, 4}, {3, 0, 4}, {3, 5, 0}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (int wide = 0; wide < 2; wide++)
                expect_exact_everywhere(wide ? SB_F64 : SB_F32, transposes, empty[i][0],
                                        empty[i][1], empty[i][2]);
}

/* Rounding errors of a sum of k products are at most about k / 2 units, mostly far fewer. */
CPU_TEST(gemm, sums_are_as_precise_as_their_dtype)
{
    for (int wide = 0; wide < 2; wide++)
        for (int way = 0; way < WAYS; way++) {
            struct gemm_product p = product_new(wide ? SB_F64 : SB_F32, way, 9, 37, 1000, 0, false);
            void *c = result(&p, kernel_cpu_set(), way, 0);
            double worst = 0;
            for (int64_t i = 0; i < p.m; i++)
                for (int64_t j = 0; j < p.n; j++) {
                    long double sum = 0, size = 0;
                    for (int64_t l = 0; l < p.k; l++) {
                        long double term = (long double)element_a(&p, i, l) * element_b(&p, l, j);
                        sum += term;
                        size += fabsl(term);
                    }
                    worst = fmax(worst, (double)(fabsl(get(&p, c, i * p.n + j) - sum) / size));
                }
            cr_expect(worst < (wide ? 0x1p-52 : 0x1p-23) * 4, "%g", worst);
        }
}

static int64_t row_bytes(const struct gemm_product *p)
{
    return p->n * (p->dtype == SB_F32 ? 4 : 8);
}

static const char *row_of(const struct gemm_product *p, const void *c, int64_t i)
{
    return (const char *)c + i * p->ldc * (p->dtype == SB_F32 ? 4 : 8);
}

/* The first `rows` rows of p alone, with A's first row moved to the end. */
static void expect_rows_unchanged(const struct gemm_product *p, enum kernel_set set,
                                  const void *all, int64_t rows)
{
    struct gemm_product part = *p;
    part.m = rows;
    void *c = result(&part, set, BUILTIN, 0);
    for (int64_t i = 0; i < rows; i++)
        cr_assert(memcmp(row_of(p, c, i), row_of(p, all, i), (size_t)row_bytes(p)) == 0,
                  "row %d of %d differs (%c%c, set %d)", (int)i, (int)rows,
                  p->transpose_a ? 't' : 'n', p->transpose_b ? 't' : 'n', (int)set);
    if (!p->transpose_a) { /* the last rows, at another position */
        size_t size = p->dtype == SB_F32 ? 4 : 8;
        part.a = (char *)p->a + (size_t)((p->m - rows) * p->lda) * size;
        c = result(&part, set, BUILTIN, 0);
        for (int64_t i = 0; i < rows; i++)
            cr_assert(
                memcmp(row_of(p, c, i), row_of(p, all, p->m - rows + i), (size_t)row_bytes(p)) == 0,
                "row %d changes at position %d", (int)(p->m - rows + i), (int)i);
    }
}

CPU_TEST(gemm, rows_of_the_builtin_do_not_depend_on_their_number_or_position)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int transposes = 0; transposes < 4; transposes++)
            for (int wide = 0; wide < 2; wide++) {
                struct gemm_product p =
                    product_new(wide ? SB_F64 : SB_F32, transposes, 70, 53, 270, 1, false);
                void *all = result(&p, s.set, BUILTIN, 0);
                for (int64_t rows = 1; rows <= 70; rows += rows < 18 || test_long() ? 1 : 13)
                    expect_rows_unchanged(&p, s.set, all, rows);
            }
}

/* Both fuse multiplications with additions; the order of additions is the same. */
CPU_TEST(gemm, the_builtin_has_the_same_bits_on_avx2_and_avx512)
{
    if (!kernel_use_cpu_set(KERNELS_CPU_V4) || !kernel_use_cpu_set(KERNELS_CPU_V3))
        return;
    for (int transposes = 0; transposes < 4; transposes++) {
        struct gemm_product p = product_new(SB_F32, transposes, 41, 83, 700, 0, false);
        void *x = result(&p, KERNELS_CPU_V3, BUILTIN, 0.3),
             *y = result(&p, KERNELS_CPU_V4, BUILTIN, 0.3);
        cr_expect(memcmp(x, y, bytes_c(&p)) == 0, "transposes %d", transposes);
    }
}

CPU_TEST(gemm, threads_change_no_bit)
{
    static const int64_t large[][3] = {
        {300, 200, 100}, {3, 900, 300}, {90, 40, 900}, {300, 320, 260}};
    kernel_parallel_work = 0;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int way = 0; way < WAYS; way++) {
            struct gemm_product p =
                product_new(SB_F32, (int)i % 4, large[i][0], large[i][1], large[i][2], 0, false);
            sb_set_threads(1);
            void *one = result(&p, kernel_cpu_set(), way, 0.5);
            for (int threads = 2; threads <= 5; threads++) {
                sb_set_threads(threads);
                void *several = result(&p, kernel_cpu_set(), way, 0.5);
                cr_expect(memcmp(one, several, bytes_c(&p)) == 0,
                          "shape %d, way %d: %d threads change bits", (int)i, way, threads);
            }
        }
}

/* Large enough for BLAS, where there is one. */
CPU_TEST(gemm, large_products_agree_with_the_builtin_for_any_number_of_threads)
{
    struct gemm_product p = product_new(SB_F32, 3, 1037, 1063, 1029, 0, false);
    float *builtin = result(&p, kernel_cpu_set(), BUILTIN, 0);
    sb_set_threads(1);
    float *one = result(&p, kernel_cpu_set(), PARALLEL, 0);
    sb_set_threads(3);
    float *three = result(&p, kernel_cpu_set(), PARALLEL, 0);
    cr_expect(memcmp(one, three, bytes_c(&p)) == 0, "three threads change bits");
    /* No fmax: it ignores NaN, and gcc 12 for ARM crashes on it over floats read as doubles. */
    int64_t far = 0;
    for (int64_t i = 0; i < p.m * p.n; i++)
        far += !(fabs((double)one[i] - (double)builtin[i]) < 1e-4);
    cr_expect(far == 0, "%lld sums of 1029 products below 1 differ by 1e-4", (long long)far);
}

CPU_TEST(gemm, calls_from_several_threads_change_no_bit)
{
    enum { CALLS = 8 };
    kernel_parallel_work = 0;
    sb_set_threads(4);
    for (int way = 0; way < WAYS; way++) {
        struct gemm_product p = product_new(SB_F32, 2, 130, 70, 90, 0, false);
        void *alone = result(&p, kernel_cpu_set(), way, 0), *c[CALLS];
#pragma omp parallel for
        for (int i = 0; i < CALLS; i++)
            c[i] = result(&p, kernel_cpu_set(), way, 0);
        for (int i = 0; i < CALLS; i++)
            cr_expect(memcmp(alone, c[i], bytes_c(&p)) == 0, "way %d, call %d", way, i);
    }
}

/* Small whole numbers, which bf16 represents exactly. */
static uint16_t *narrow_numbers(int64_t count)
{
    uint16_t *x = KEPT(calloc((size_t)count + 1, sizeof *x));
    cr_assert(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = sb_bf16_round((float)number(true));
    return x;
}

static void expect_bf16_exact(enum kernel_set set, int transposes, int64_t m, int64_t n, int64_t k,
                              int64_t spare)
{
    const bool ta = transposes & 1, tb = transposes & 2;
    const int64_t lda = (ta ? m : k) + spare, ldb = (tb ? k : n) + spare;
    uint16_t *a = narrow_numbers((ta ? k : m) * lda), *b = narrow_numbers((tb ? n : k) * ldb);
    float *c = KEPT(calloc((size_t)(m * n) + 1, sizeof *c));
    const struct gemm_kernels *kernels = gemm_rows.row[set][SB_F32];
    cr_assert(c && kernels->bf16(ta, tb, m, n, k, a, lda, b, ldb, 0, c, n));
    cr_assert(kernels->bf16(ta, tb, m, n, k, a, lda, b, ldb, 1, c, n));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += sb_bf16_widen(a[ta ? l * lda + i : i * lda + l]) *
                       sb_bf16_widen(b[tb ? j * ldb + l : l * ldb + j]);
            cr_assert(c[i * n + j] == 2 * sum, "C(%d, %d) of %dx%dx%d (%c%c, set %d) is %g, not %g",
                      (int)i, (int)j, (int)m, (int)n, (int)k, ta ? 't' : 'n', tb ? 't' : 'n',
                      (int)set, (double)c[i * n + j], (double)(2 * sum));
        }
}

/* Also odd sizes, whose pairs of numbers are not adjacent. */
CPU_TEST(gemm, products_of_whole_numbers_in_bf16_are_exact)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int transposes = 0; transposes < 4; transposes++)
                for (int64_t spare = 0; spare < 3; spare++)
                    expect_bf16_exact(s.set, transposes, shapes[i][0], shapes[i][1], shapes[i][2],
                                      spare);
}

CPU_TEST(gemm, threads_change_no_bit_of_a_product_in_bf16)
{
    enum { M = 300, N = 320, K = 260 };
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    uint16_t *a = KEPT(calloc(M * K, sizeof *a)), *b = KEPT(calloc(N * K, sizeof *b));
    float *c = KEPT(calloc(2 * M * N, sizeof *c));
    cr_assert(a && b && c);
    for (int i = 0; i < M * K; i++)
        a[i] = sb_bf16_round((float)number(false));
    for (int i = 0; i < N * K; i++)
        b[i] = sb_bf16_round((float)number(false));
    kernel_parallel_work = 0;
    for (int transposes = 0; transposes < 4; transposes++)
        for (int threads = 1; threads <= 3; threads++) {
            const bool ta = transposes & 1, tb = transposes & 2;
            sb_set_threads(threads);
            cr_assert(kernels->bf16(ta, tb, M, N, K, a, ta ? M : K, b, tb ? K : N, 0,
                                    c + (threads > 1 ? M * N : 0), N));
            cr_expect(threads == 1 || memcmp(c, c + M * N, M * N * sizeof *c) == 0,
                      "%d threads change bits", threads);
        }
}

/* Vectors that reach over an edge have other columns or nothing, which must not change C. */
CPU_TEST(gemm, a_nan_stays_in_its_row_or_column)
{
    for (int transposes = 0; transposes < 4; transposes++) {
        struct gemm_product p = product_new(SB_F32, transposes, 11, 21, 37, 0, true);
        int64_t i = 4, j = 20, l = 36;
        put(&p, p.a, p.transpose_a ? l * p.lda + i : i * p.lda + l, NAN);
        put(&p, p.b, p.transpose_b ? j * p.ldb + l : l * p.ldb + j, INFINITY);
        for (int set = KERNELS_CPU; set <= KERNELS_CPU_V4 && kernel_use_cpu_set(set); set++) {
            float *c = result(&p, set, BUILTIN, 0);
            for (int64_t r = 0; r < p.m; r++)
                for (int64_t s = 0; s < p.n; s++)
                    cr_expect(isfinite(c[r * p.ldc + s]) == (r != i && s != j), "C(%d, %d) is %g",
                              (int)r, (int)s, c[r * p.ldc + s]);
        }
    }
}

/* The built-in product in place of these kernels, for these vectors; of others OpenBLAS is used. */
CPU_TEST(gemm, a_table_says_which_kernels_of_openblas_are_slower)
{
    cr_expect(gemm_table_prefers_builtin("Cooperlake", 21, KERNELS_CPU_V4, SB_F32), "as measured");
    cr_expect(!gemm_table_prefers_builtin("Cooperlake", 21, KERNELS_CPU_V3, SB_F32), "vectors");
    cr_expect(!gemm_table_prefers_builtin("Cooperlake", 99, KERNELS_CPU_V4, SB_F32), "version");
    cr_expect(!gemm_table_prefers_builtin("Nobody's", 21, KERNELS_CPU_V4, SB_F32), "kernels");
    cr_expect(!gemm_table_prefers_builtin("Cooperlake", -1, KERNELS_CPU_V4, SB_F32), "not 0.3.x");
}

CPU_TEST(gemm, the_library_names_its_matrix_product)
{
    cr_expect(strstr(gemm_library(), gemm_has_blas() ? "OpenBLAS" : "built-in"), "%s",
              gemm_library());
}

/* Whether each call returns the same. */
static void *read_library_name(void *same)
{
    char name[256];
    snprintf(name, sizeof name, "%s", gemm_library());
    for (int i = 0; i < 100000; i++)
        *(bool *)same &= strcmp(gemm_library(), name) == 0;
    return NULL;
}

CPU_TEST(gemm, threads_that_ask_at_the_same_time_read_the_same_name)
{
    enum { THREADS = 4 };
    bool same[THREADS] = {true, true, true, true};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert(pthread_create(&thread[i], NULL, read_library_name, &same[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        cr_expect(same[i], "thread %d", i);
    }
}
