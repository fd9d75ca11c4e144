#include "ops/gemm.h"
#include "tests/support/test.h"
#include <pthread.h>
#include <stdio.h>

enum { PARALLEL, SERIAL, BUILTIN, WAYS };

/* A product of one dtype; elements are stored as f32 or f64 and looked at as doubles. */
struct product {
    sb_dtype dtype;
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc;
    void *a, *b, *c;
};

static double get(const struct product *p, const void *x, int64_t i)
{
    return p->dtype == SB_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void put(const struct product *p, void *x, int64_t i, double value)
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

static void *numbers(const struct product *p, int64_t count, bool whole)
{
    void *x = KEPT(calloc((size_t)count + 1, sizeof(double)));
    for (int64_t i = 0; i < count; i++)
        put(p, x, i, number(whole));
    return x;
}

/* Rows are a few elements longer than necessary. */
static struct product product_new(sb_dtype dtype, int transposes, int64_t m, int64_t n, int64_t k,
                                  int64_t spare, bool whole)
{
    struct product p = {.dtype = dtype,
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

static double element_a(const struct product *p, int64_t i, int64_t l)
{
    return get(p, p->a, p->transpose_a ? l * p->lda + i : i * p->lda + l);
}

static double element_b(const struct product *p, int64_t l, int64_t j)
{
    return get(p, p->b, p->transpose_b ? j * p->ldb + l : l * p->ldb + j);
}

static bool run(const struct product *p, enum kernel_set set, int way, double beta, void *c)
{
    const struct gemm_kernels *kernels = gemm_rows.row[set][p->dtype];
    gemm_function *gemm = way == PARALLEL ? kernels->parallel
                          : way == SERIAL ? kernels->serial
                                          : kernels->builtin;
    return gemm(p->transpose_a, p->transpose_b, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, beta,
                c, p->ldc);
}

static size_t bytes_c(const struct product *p)
{
    return (size_t)(p->m * p->ldc) * (p->dtype == SB_F32 ? sizeof(float) : sizeof(double));
}

/* C after one product that starts from p->c, or from NaN where it must not be read. */
static void *result(const struct product *p, enum kernel_set set, int way, double beta)
{
    void *c = KEPT(malloc(bytes_c(p) + 1));
    memcpy(c, p->c, bytes_c(p));
    for (int64_t i = 0; beta == 0 && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            put(p, c, i * p->ldc + j, NAN);
    cr_assert(run(p, set, way, beta, c));
    return c;
}

static void expect_exact(const struct product *p, enum kernel_set set, int way, double beta,
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
    struct product p = product_new(dtype, transposes, m, n, k, m % 3 + n % 2, true);
    double *sums = KEPT(calloc((size_t)(m * n) + 1, sizeof *sums));
    cr_assert(sums);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                sums[i * n + j] += element_a(&p, i, l) * element_b(&p, l, j);
    for (int set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (int way = 0; way < WAYS && kernel_use_cpu_set(set); way++) {
            expect_exact(&p, set, way, 0, sums);
            expect_exact(&p, set, way, transposes % 2 ? 0.5 : 1, sums);
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
            struct product p = product_new(wide ? SB_F64 : SB_F32, way, 9, 37, 1000, 0, false);
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

static int64_t row_bytes(const struct product *p)
{
    return p->n * (p->dtype == SB_F32 ? 4 : 8);
}

static const char *row_of(const struct product *p, const void *c, int64_t i)
{
    return (const char *)c + i * p->ldc * (p->dtype == SB_F32 ? 4 : 8);
}

/* The first `rows` rows of p alone, with A's first row moved to the end. */
static void expect_rows_unchanged(const struct product *p, enum kernel_set set, const void *all,
                                  int64_t rows)
{
    struct product part = *p;
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
    for (int set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (int transposes = 0; transposes < 4 && kernel_use_cpu_set(set); transposes++)
            for (int wide = 0; wide < 2; wide++) {
                struct product p =
                    product_new(wide ? SB_F64 : SB_F32, transposes, 70, 53, 270, 1, false);
                void *all = result(&p, set, BUILTIN, 0);
                for (int64_t rows = 1; rows <= 70; rows += rows < 18 || test_long() ? 1 : 13)
                    expect_rows_unchanged(&p, set, all, rows);
            }
}

/* Both fuse multiplications with additions; the order of additions is the same. */
CPU_TEST(gemm, the_builtin_has_the_same_bits_on_avx2_and_avx512)
{
    if (!kernel_use_cpu_set(KERNELS_CPU_V4) || !kernel_use_cpu_set(KERNELS_CPU_V3))
        return;
    for (int transposes = 0; transposes < 4; transposes++) {
        struct product p = product_new(SB_F32, transposes, 41, 83, 700, 0, false);
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
            struct product p =
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
    struct product p = product_new(SB_F32, 3, 1037, 1063, 1029, 0, false);
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
        struct product p = product_new(SB_F32, 2, 130, 70, 90, 0, false);
        void *alone = result(&p, kernel_cpu_set(), way, 0), *c[CALLS];
#pragma omp parallel for
        for (int i = 0; i < CALLS; i++)
            c[i] = result(&p, kernel_cpu_set(), way, 0);
        for (int i = 0; i < CALLS; i++) {
            cr_expect(memcmp(alone, c[i], bytes_c(&p)) == 0, "way %d, call %d", way, i);
        }
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
    for (int set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && kernel_use_cpu_set(set); i++)
            for (int transposes = 0; transposes < 4; transposes++)
                for (int64_t spare = 0; spare < 3; spare++)
                    expect_bf16_exact(set, transposes, shapes[i][0], shapes[i][1], shapes[i][2],
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
        struct product p = product_new(SB_F32, transposes, 11, 21, 37, 0, true);
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
