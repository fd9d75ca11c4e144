/*
 * Products of bf16, which a GPU computes on tensor cores. In decoding its own kernel does it, with
 * one of four tiles, by the size; none of them may show in the bits.
 */
#include "tests/support/compare.h"

static const sb_context decoding = {.batch_invariant = true};

typedef sb_tensor *(*matmul)(sb_tensor *a, sb_tensor *b);

static const struct product {
    matmul f;
    bool transpose_a, transpose_b;
} products[] = {
    {sb_matmul, false, false}, {sb_matmul_nt, false, true}, {sb_matmul_tn, true, false}};

enum { PRODUCTS = 3 };

/* A tensor of whole numbers in -4..4, whose sums are exact. */
static sb_tensor *whole_numbers(uint64_t seed, int rank, const int64_t *dim)
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
    sb_tensor *a = whole_numbers(1, SB_SHAPE(B, p->transpose_a ? k : m, p->transpose_a ? m : k));
    sb_tensor *b = whole_numbers(2, SB_SHAPE(B, p->transpose_b ? n : k, p->transpose_b ? k : n));
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
static void expect_rows_alone(matmul f, sb_tensor *a, sb_tensor *b, const double *all,
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
    expect_rows_alone(p->f, a, b, all, 0, 1);
    expect_rows_alone(p->f, a, b, all, m - 1, 1);
    expect_rows_alone(p->f, a, b, all, m / 3, m / 2);
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
