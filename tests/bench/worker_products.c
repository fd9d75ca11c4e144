/* The best rate of a matrix product: the built-in one, or BLAS on slabs of rows or columns. */
#include "ops/gemm.h"
#include "tensor/failure.h"
#include "tests/bench/worker.h"
#include <stdlib.h>
#ifdef SOFTBACK_BLAS
#include <cblas.h>
#endif

struct product {
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t slabs; /* of rows or columns of C */
};

static int64_t lda(const struct product *p)
{
    return p->ta ? p->m : p->k;
}

static int64_t ldb(const struct product *p)
{
    return p->tb ? p->k : p->n;
}

static void multiply_builtin(void *context)
{
    const struct product *p = context;
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][SB_F32];
    kernels->builtin(p->ta, p->tb, p->m, p->n, p->k, p->a, lda(p), p->b, ldb(p), 0, p->c, p->n);
}

#ifdef SOFTBACK_BLAS
static void multiply_part(const struct product *p, int64_t row, int64_t rows, int64_t column,
                          int64_t columns)
{
    cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans,
                (int)rows, (int)columns, (int)p->k, 1, p->a + (p->ta ? row : row * p->k),
                (int)lda(p), p->b + (p->tb ? column * p->k : column), (int)ldb(p), 0,
                p->c + row * p->n + column, (int)p->n);
}

static void multiply_row_slabs(void *context)
{
    const struct product *p = context;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p->slabs; i++) {
        const int64_t first = i * p->m / p->slabs, next = (i + 1) * p->m / p->slabs;
        if (next > first)
            multiply_part(p, first, next - first, 0, p->n);
    }
}

static void multiply_column_slabs(void *context)
{
    const struct product *p = context;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p->slabs; i++) {
        const int64_t first = i * p->n / p->slabs, next = (i + 1) * p->n / p->slabs;
        if (next > first)
            multiply_part(p, 0, p->m, first, next - first);
    }
}

static double best_of_blas(struct product *p, double least)
{
    for (int64_t each = 1; gemm_has_blas() && each <= 4; each *= 4) {
        p->slabs = each * sb_threads();
        const double rows = worker_best(multiply_row_slabs, p),
                     columns = worker_best(multiply_column_slabs, p);
        least = rows < least ? rows : least;
        least = columns < least ? columns : least;
    }
    return least;
}
#else
static double best_of_blas(struct product *p, double least)
{
    (void)p;
    return least;
}
#endif

double worker_rate_product(const char *words)
{
    int64_t size[5];
    char *end = (char *)words;
    for (int i = 0; i < 5; i++) {
        size[i] = strtoll(words, &end, 10);
        if (end == words || size[i] < (i < 3) || size[i] > 1 << 20) {
            sb_fail("worker: rate gemm needs M N K and two of 0 or 1, not \"%s\"", words);
            return -1;
        }
        words = end;
    }
    struct product p = {
        .m = size[0], .n = size[1], .k = size[2], .ta = size[3] != 0, .tb = size[4] != 0};
    sb_tensor *a = worker_values(1, SB_SHAPE(p.m, p.k)), *b = worker_values(2, SB_SHAPE(p.k, p.n)),
              *c = sb_tensor_full(SB_F32, SB_SHAPE(p.m, p.n), 0);
    double seconds = -1;
    if (a && b && c) {
        p.a = sb_tensor_data(a);
        p.b = sb_tensor_data(b);
        p.c = sb_tensor_data(c);
        seconds = best_of_blas(&p, worker_best(multiply_builtin, &p));
    }
    sb_tensor_release(a);
    sb_tensor_release(b);
    sb_tensor_release(c);
    return seconds > 0 ? 2 * (double)p.m * (double)p.n * (double)p.k / seconds : -1;
}
