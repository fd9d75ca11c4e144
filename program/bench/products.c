/*
 * Matrix products of a training step, by the built-in product and by OpenBLAS in turns. The last
 * row of each dtype compares their times for the shapes that are large enough for OpenBLAS, and
 * says which one the table in ops/gemm.c takes.
 */
#include "ops/gemm.h"
#include "program/bench/bench.h"
#include "tensor/failure.h"
#include <math.h>
#include <stdio.h>

struct shape {
    const char *name;
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    bool large; /* counts for the comparison */
};

/* x W', and for base dy W and dy' x too; tokens x width, as in tests/bench/README.md. */
static const struct shape shapes[] = {
    {"toy: feed-forward", 1024, 128, 64, false, true, false},
    {"tiny: feed-forward", 1536, 256, 128, false, true, false},
    {"tiny: vocabulary", 1536, 10000, 128, false, true, false},
    {"base: feed-forward", 1024, 2048, 512, false, true, true},
    {"base: feed-forward, dx", 1024, 512, 2048, false, false, true},
    {"base: feed-forward, dweight", 2048, 512, 1024, true, false, true},
    {"base: vocabulary", 1024, 8000, 512, false, true, true},
    {"base: vocabulary, dweight", 8000, 512, 1024, true, false, true},
    {"square", 2048, 2048, 2048, false, false, true},
};
static const struct shape quick_shape = {"quick", 16, 32, 8, false, true, true};

enum { SHAPES = sizeof shapes / sizeof shapes[0], LEAST = 3, MOST = 15 };

struct product {
    const struct shape *shape;
    sb_tensor *a, *b, *c;
};

static double products_once(const struct product *p, gemm_function *gemm)
{
    const struct shape *s = p->shape;
    const double begun = bench_clock();
    const bool ok = gemm(s->transpose_a, s->transpose_b, s->m, s->n, s->k, sb_tensor_data(p->a),
                         s->transpose_a ? s->m : s->k, sb_tensor_data(p->b),
                         s->transpose_b ? s->k : s->n, 0, sb_tensor_data(p->c), s->n);
    return bench_since(begun, ok);
}

struct times {
    double builtin, blas; /* seconds */
    double ratio;         /* of OpenBLAS's time to the other's; 0: no OpenBLAS */
};

/* Medians of up to 15 rounds within a second, in turns, since other load changes the speed. */
static bool products_in_turns(struct bench *bench, const struct gemm_kernels *kernels,
                              const struct product *p, struct times *times)
{
    double builtin[MOST], blas[MOST], ratio[MOST], rates[MOST];
    const int most = bench->quick ? 1 : MOST;
    int n = 0;
    for (double begun = bench_clock(); n < most && (n < LEAST || bench_since(begun, true) < 1);
         n++) {
        builtin[n] = products_once(p, kernels->builtin);
        blas[n] = kernels->blas ? products_once(p, kernels->blas) : 0;
        ratio[n] = blas[n] / builtin[n];
        rates[n] = bench_limit_now(bench, BENCH_F32);
        if (builtin[n] < 0 || blas[n] < 0)
            return false;
    }
    if (rates[0] > 0)
        bench->limit[BENCH_F32] = bench_middle(n, rates);
    *times =
        (struct times){bench_middle(n, builtin), bench_middle(n, blas), bench_middle(n, ratio)};
    return true;
}

static void products_print(const struct bench *bench, const struct shape *s, sb_dtype dtype,
                           const char *by, double seconds)
{
    char way[40];
    const double operations = 2 * (double)s->m * (double)s->n * (double)s->k;
    snprintf(way, sizeof way, "%s, %s", sb_dtype_name(dtype), by);
    bench_print(bench, &(struct bench_row){.group = "product",
                                           .name = s->name,
                                           .way = way,
                                           .seconds = seconds,
                                           .amount = operations,
                                           .unit = "FLOP/s",
                                           .limit = BENCH_F32,
                                           .work = dtype == SB_F32 ? operations : 0});
}

static bool products_shape(struct bench *bench, const struct shape *s, sb_dtype dtype,
                           struct times *times)
{
    const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][dtype];
    struct product p = {s, bench_values(dtype, 1, SB_SHAPE(s->m, s->k)),
                        bench_values(dtype, 2, SB_SHAPE(s->k, s->n)),
                        sb_tensor_full(dtype, SB_SHAPE(s->m, s->n), 0)};
    const bool ok = p.a && p.b && p.c && products_in_turns(bench, kernels, &p, times);
    sb_tensor_release(p.a);
    sb_tensor_release(p.b);
    sb_tensor_release(p.c);
    if (!ok)
        return false;
    products_print(bench, s, dtype, "built-in", times->builtin);
    if (times->ratio > 0)
        products_print(bench, s, dtype, "OpenBLAS", times->blas);
    return true;
}

/* The geometric mean of the ratios, and what the table says. */
static void products_conclude(const struct bench *bench, sb_dtype dtype, double ratio)
{
    const bool builtin = gemm_builtin_is_faster(dtype);
    if (bench->tabs)
        printf("choice\t%s\t%s\t%.4g\t%s\n", sb_dtype_name(dtype), gemm_blas(), ratio,
               builtin ? "built-in" : "OpenBLAS");
    else
        printf("choice     %s, %s kernels: the built-in product takes %.2f times as long as %s; "
               "the table in ops/gemm.c takes %s\n",
               sb_dtype_name(dtype), kernel_cpu_name(), 1 / ratio, gemm_blas(),
               builtin ? "the built-in one" : "OpenBLAS");
}

static bool products_dtype(struct bench *bench, sb_dtype dtype)
{
    struct times times = {0};
    double logs = 0;
    int compared = 0;
    for (int i = 0; i < (bench->quick ? 1 : SHAPES); i++) {
        const struct shape *s = bench->quick ? &quick_shape : &shapes[i];
        if (!products_shape(bench, s, dtype, &times))
            return false;
        logs += s->large && times.ratio > 0 ? log(times.ratio) : 0;
        compared += s->large && times.ratio > 0;
    }
    if (compared)
        products_conclude(bench, dtype, exp(logs / compared));
    return true;
}

bool bench_products(struct bench *bench)
{
    return bench->gpu || (products_dtype(bench, SB_F32) && products_dtype(bench, SB_F64));
}
