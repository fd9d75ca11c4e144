/*
 * The rows of the benchmark: names, the jobs that they measure, and where. Training and operations
 * have sizes at which other libraries are measured too (tests/bench/compare.py, gpu.py).
 */
#include "ops/gemm.h"
#include "program/bench/job.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum where {
    CPU = 1,
    GPU = 2,
    QUICK = 4,      /* instead of the others, to check that everything runs */
    PEERS = 8,      /* in tests/bench/compare.py too */
    COMPOSED = 16,  /* attention also composed, which stores n^2 weights a head */
    BF16 = 32,      /* in bf16 too, on a GPU */
    POSITIONS = 64, /* decoding with cache, by its position */
    LARGE = 128,    /* of products: counts for the comparison of built-in and OpenBLAS */
    BOTH = CPU | GPU,
};

struct row {
    const char *group, *name, *line;
    unsigned where;
};

static const struct row rows[] = {
    {"train", "toy",
     "seq2seq width=64 heads=2 feed_forward=128 layers=2 pairs=64 length=16 symbols=64 tied=0 "
     "dropout=0.1",
     BOTH | PEERS},
    {"train", "usual", /* the defaults of train */
     "seq2seq width=128 heads=4 feed_forward=512 layers=3 pairs=64 length=16 symbols=64 tied=0 "
     "dropout=0.1",
     BOTH},
    {"train", "tiny",
     "seq2seq width=128 heads=4 feed_forward=256 layers=4 pairs=64 length=24 symbols=10000 tied=1 "
     "dropout=0.1",
     BOTH | PEERS},
    {"train", "base",
     "seq2seq width=512 heads=8 feed_forward=2048 layers=6 pairs=16 length=64 symbols=8000 tied=1 "
     "dropout=0.1",
     BOTH | PEERS},
    {"train", "base, 256 pairs",
     "seq2seq width=512 heads=8 feed_forward=2048 layers=6 pairs=256 length=64 symbols=8000 tied=1 "
     "dropout=0.1",
     GPU},
    {"train", "GPT-2 124M",
     "language_model width=768 heads=12 feed_forward=3072 layers=12 pairs=4 length=64 "
     "symbols=50304 positions=1024 dropout=0",
     GPU | PEERS},
    {"train", "GPT-2 124M, 4 x 1024",
     "language_model width=768 heads=12 feed_forward=3072 layers=12 pairs=4 length=1024 "
     "symbols=50304 positions=1024 dropout=0",
     GPU},
    {"train", "quick",
     "seq2seq width=16 heads=2 feed_forward=16 layers=1 pairs=2 length=8 symbols=16 tied=1 "
     "dropout=0.1",
     QUICK | PEERS},
    {"train", "quick, a decoder alone",
     "language_model width=16 heads=2 feed_forward=32 layers=1 pairs=2 length=8 symbols=32 "
     "positions=1024 dropout=0",
     QUICK | PEERS},

    {"decode", "batch 1",
     "decoding width=128 heads=4 feed_forward=256 layers=4 symbols=10000 source=24 target=64 "
     "dropout=0 pairs=1",
     CPU | PEERS},
    {"decode", "batch 64",
     "decoding width=128 heads=4 feed_forward=256 layers=4 symbols=10000 source=24 target=64 "
     "dropout=0 pairs=64",
     CPU | PEERS},
    {"decode", "batch 2",
     "decoding width=16 heads=2 feed_forward=32 layers=1 symbols=32 source=4 target=4 dropout=0 "
     "pairs=2",
     QUICK | PEERS},
    {"decode", "with cache",
     "decoding_step width=128 heads=4 feed_forward=256 layers=4 symbols=14 source=24 target=512 "
     "dropout=0 pairs=1",
     BOTH | POSITIONS},
    {"decode", "with cache",
     "decoding_step width=128 heads=4 feed_forward=256 layers=4 symbols=14 source=24 target=8 "
     "dropout=0 pairs=1",
     QUICK | POSITIONS},

    {"operation", "softmax", "softmax rows=1024 columns=8192", CPU | PEERS},
    {"operation", "layer norm", "layer_norm rows=8192 columns=1024", CPU | PEERS},
    {"operation", "cross entropy", "cross_entropy rows=1536 columns=10000", CPU | PEERS},
    {"operation", "adam", "adam size=10000000", CPU | PEERS},
    {"operation", "softmax", "softmax rows=8192 columns=8192", GPU | BF16},
    {"operation", "layer norm", "layer_norm rows=65536 columns=1024", GPU | BF16},
    {"operation", "cross entropy", "cross_entropy rows=2048 columns=32768", GPU | BF16},
    {"operation", "adam", "adam size=67108864", GPU},
    {"operation", "softmax", "softmax rows=8 columns=64", QUICK | PEERS | BF16},
    {"operation", "layer norm", "layer_norm rows=8 columns=64", QUICK | PEERS | BF16},
    {"operation", "cross entropy", "cross_entropy rows=8 columns=64", QUICK | PEERS | BF16},
    {"operation", "adam", "adam size=1024", QUICK | PEERS},

    {"attention", "full 256 x 8", "attention n=256 heads=8 size=64", CPU | COMPOSED},
    {"attention", "full 512 x 8", "attention n=512 heads=8 size=64", BOTH | COMPOSED | PEERS},
    {"attention", "full 1024 x 8", "attention n=1024 heads=8 size=64", BOTH | COMPOSED | PEERS},
    {"attention", "full 2048 x 8", "attention n=2048 heads=8 size=64", GPU | COMPOSED | PEERS},
    {"attention", "full 4096 x 8", "attention n=4096 heads=8 size=64", BOTH | COMPOSED | PEERS},
    {"attention", "full 8192 x 8", "attention n=8192 heads=8 size=64", GPU | PEERS},
    {"attention", "full 16384 x 8", "attention n=16384 heads=8 size=64", GPU | PEERS},
    {"attention", "full 4096 x 8, dropout", "attention n=4096 heads=8 size=64 dropout=0.1",
     BOTH | COMPOSED},
    {"attention", "full 4096 x 1", "attention n=4096 heads=1 size=64", BOTH | COMPOSED},
    {"attention", "causal 512 x 8", "attention n=512 heads=8 size=64 causal=1", GPU | PEERS},
    {"attention", "causal 1024 x 8", "attention n=1024 heads=8 size=64 causal=1", GPU | PEERS},
    {"attention", "causal 2048 x 8", "attention n=2048 heads=8 size=64 causal=1", GPU | PEERS},
    {"attention", "causal 4096 x 8", "attention n=4096 heads=8 size=64 causal=1",
     BOTH | COMPOSED | PEERS},
    {"attention", "causal 8192 x 8", "attention n=8192 heads=8 size=64 causal=1", BOTH | PEERS},
    {"attention", "causal 16384 x 8", "attention n=16384 heads=8 size=64 causal=1", GPU | PEERS},
    {"attention", "window 4096 x 8", "attention n=4096 heads=8 size=64 window=256",
     BOTH | COMPOSED},
    {"attention", "window 8192 x 8", "attention n=8192 heads=8 size=64 window=256", BOTH},
    {"attention", "window 16384 x 8", "attention n=16384 heads=8 size=64 window=256", BOTH},
    {"attention", "full 64 x 2", "attention n=64 heads=2 size=64", QUICK | PEERS},
    {"attention", "causal 64 x 2", "attention n=64 heads=2 size=64 causal=1", QUICK | PEERS},
    {"attention", "causal 64 x 2, dropout", "attention n=64 heads=2 size=64 causal=1 dropout=0.1",
     QUICK | COMPOSED},

    /* x W', and for base dy W and dy' x too */
    {"product", "toy: feed-forward", "product m=1024 n=128 k=64 transpose_b=1", CPU},
    {"product", "tiny: feed-forward", "product m=1536 n=256 k=128 transpose_b=1", CPU},
    {"product", "tiny: vocabulary", "product m=1536 n=10000 k=128 transpose_b=1", CPU},
    {"product", "base: feed-forward", "product m=1024 n=2048 k=512 transpose_b=1", CPU | LARGE},
    {"product", "base: feed-forward, dx", "product m=1024 n=512 k=2048", CPU | LARGE},
    {"product", "base: feed-forward, dweight", "product m=2048 n=512 k=1024 transpose_a=1",
     CPU | LARGE},
    {"product", "base: vocabulary", "product m=1024 n=8000 k=512 transpose_b=1", CPU | LARGE},
    {"product", "base: vocabulary, dweight", "product m=8000 n=512 k=1024 transpose_a=1",
     CPU | LARGE},
    {"product", "square", "product m=2048 n=2048 k=2048", CPU | LARGE},
    {"product", "quick", "product m=16 n=32 k=8 transpose_b=1", QUICK | LARGE},
};

/* Each row is measured in every way of its group that the device has; products are measured in
   turns, see below. */
static const struct way {
    const char *group, *name;
    const char *words; /* added to the line */
    unsigned where;    /* measured there */
    unsigned needs;    /* of the row */
} ways[] = {
    {"train", "f32", "", BOTH, 0},
    {"train", "f32, no graph", " eager=1", GPU, 0},
    {"train", "tf32", " tf32=1", GPU, 0},
    {"train", "bf16", " bf16=1", BOTH, 0},
    {"train", "bf16, no graph", " bf16=1 eager=1", GPU, 0},
    {"decode", "f32", "", CPU, 0},
    {"decode", "f32", "", GPU, POSITIONS},
    {"decode", "int8", " int8=1", CPU, 0},
    {"operation", "f32", "", BOTH, 0},
    {"operation", "bf16", " bf16=1", GPU, BF16},
    {"attention", "f32, tiled", " tiled=1", BOTH, 0},
    {"attention", "f32, composed", " composed=1", BOTH, COMPOSED},
    {"attention", "bf16, tiled", " tiled=1 bf16=1", GPU, 0},
    {"attention", "bf16, composed", " composed=1 bf16=1", GPU, COMPOSED},
};

enum { ROWS = sizeof rows / sizeof rows[0], WAYS = sizeof ways / sizeof ways[0], LINE = 256 };

/* ---- what is printed ---- */

static const char *const limit_names[] = {"copy", "f32 rate", "bf16 rate"};

/* Three digits and a prefix: "4.21 T". */
static void rows_print_number(double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int p = 0;
    while (x >= 999.5 && p < 5) {
        x /= 1000;
        p++;
    }
    char text[40];
    snprintf(text, sizeof text, "%.*f %s%s",
             x < 9.995   ? 2
             : x < 99.95 ? 1
                         : 0,
             x, prefixes[p], unit);
    printf(" %20s", text);
}

struct measured {
    const char *group, *name, *way;
    double seconds; /* 0: `amount` is a rate */
    double amount;  /* how many `unit` are done in these seconds; 0: not printed */
    const char *unit;
    enum bench_limit limit;
    double work; /* the least work: bytes to move, or operations; 0: not printed */
};

static void rows_print(const struct bench *bench, const struct measured *r)
{
    const double rate = r->seconds > 0 ? r->amount / r->seconds : r->amount;
    const double limit = bench->limit[r->limit];
    const bool known = r->work > 0 && limit > 0 && !bench->quick; /* tiny sizes measure no speed */
    const double share = known ? 100 * r->work / r->seconds / limit : 0;
    if (bench->tabs) {
        printf("%s\t%s\t%s\t%.9g\t%.6g\t%s\t%.4g\t%s\n", r->group, r->name, r->way, r->seconds,
               rate, r->unit ? r->unit : "", share, known ? limit_names[r->limit] : "");
    } else {
        printf("%-10s %-26s %-22s", r->group, r->name, r->way);
        if (r->seconds > 0)
            printf(" %10.3f ms", 1e3 * r->seconds);
        if (r->amount > 0)
            rows_print_number(rate, r->unit);
        if (known)
            printf(" %6.1f %% of the %s", share, limit_names[r->limit]);
        putchar('\n');
    }
    fflush(stdout); /* the next may take long, or fail */
}

static void rows_print_limit(const struct bench *bench, enum bench_limit limit, const char *name,
                             const char *unit)
{
    static const char *const of[] = {"memory", "f32", "bf16"};
    const struct measured row = {.group = "limit",
                                 .name = name,
                                 .way = of[limit],
                                 .amount = bench->limit[limit],
                                 .unit = unit};
    if (bench->limit[limit] > 0)
        rows_print(bench, &row);
}

/* ---- a row in one way ---- */

/* The time of a step; negative on failure. */
static double rows_measure(struct bench *bench, const struct row *row, const struct way *way,
                           const char *line, enum bench_limit limit)
{
    const int64_t outside = bench_memory_live();
    struct job job;
    double seconds = job_open(&job, line) ? bench_median(bench, limit, job_step, &job) : -1;
    if (seconds >= 0 && bench->profile && job.kind->weights &&
        !bench_profile(bench, row->name, way->name, job_step, &job, job.kind->weights(job.self),
                       outside))
        seconds = -1;
    job_close(&job);
    return seconds;
}

static bool rows_median(struct bench *bench, const struct row *row, const struct way *way,
                        const char *line, const struct job_work *work)
{
    const enum bench_limit limit = work->bytes > 0              ? BENCH_COPY
                                   : job_dtype(line) == SB_BF16 ? BENCH_BF16
                                                                : BENCH_F32;
    const double seconds = rows_measure(bench, row, way, line, limit);
    if (seconds < 0)
        return false;
    const double least = work->bytes > 0 ? work->bytes : work->operations;
    rows_print(bench, &(struct measured){.group = row->group,
                                         .name = row->name,
                                         .way = way->name,
                                         .seconds = seconds,
                                         .amount = work->tokens > 0 ? work->tokens : least,
                                         .unit = work->tokens > 0  ? "tokens/s"
                                                 : work->bytes > 0 ? "B/s"
                                                                   : "FLOP/s",
                                         .limit = limit,
                                         .work = least});
    return true;
}

/*
 * ---- decoding with cache ----
 *
 * A step of one sequence, as a line fitted to the times of all positions, each the least of several
 * rounds, since other load only adds time. A step reads every weight of the decoder once; weights
 * in the CPU's cache are read faster than a large copy.
 */

enum { MOST_POSITIONS = 512, ROUNDS = 7, PARTS = 8 };

/* Least squares: seconds = start + slope t. */
static void rows_print_fit(const struct bench *bench, const struct way *way, int n,
                           const double *seconds, const struct job_work *work)
{
    double t_mean = (n + 1) / 2.0, s_mean = 0, over = 0, under = 0;
    for (int i = 0; i < n; i++)
        s_mean += seconds[i] / n;
    for (int i = 0; i < n; i++) {
        over += (i + 1 - t_mean) * (seconds[i] - s_mean);
        under += (i + 1 - t_mean) * (i + 1 - t_mean);
    }
    const double slope = over / under;
    for (int t = 1; t <= n; t += n - 1) {
        char name[32];
        snprintf(name, sizeof name, "with cache, t = %d", t);
        rows_print(bench, &(struct measured){.group = "decode",
                                             .name = name,
                                             .way = way->name,
                                             .seconds = s_mean + slope * (t - t_mean),
                                             .amount = work->tokens,
                                             .unit = "tokens/s",
                                             .limit = BENCH_COPY,
                                             .work = work->bytes});
    }
}

/* For programs, which can check the fit: the mean time in each eighth of the steps. */
static void rows_print_parts(const struct bench *bench, const struct way *way, int n,
                             const double *seconds)
{
    for (int first = 0; first < n; first += n / PARTS) {
        double mean = 0;
        for (int t = first; t < first + n / PARTS; t++)
            mean += seconds[t] / (n / PARTS);
        char name[40];
        snprintf(name, sizeof name, "steps %d to %d", first + 1, first + n / PARTS);
        rows_print(bench, &(struct measured){
                              .group = "decode", .name = name, .way = way->name, .seconds = mean});
    }
}

static bool rows_by_position(struct bench *bench, const struct way *way, const char *line,
                             const struct job_work *work)
{
    const int positions = (int)fmin(job_number(line, "target"), MOST_POSITIONS);
    double least[MOST_POSITIONS];
    struct job job;
    bool ok = job_open(&job, line);
    for (int step = 0; ok && step < positions * (bench->quick ? 1 : ROUNDS); step++) {
        const int t = step % positions;
        const double seconds = job_step(&job);
        least[t] = step == t ? seconds : fmin(least[t], seconds);
        ok = seconds >= 0;
    }
    job_close(&job);
    if (ok)
        rows_print_fit(bench, way, positions, least, work);
    if (ok && bench->tabs)
        rows_print_parts(bench, way, positions, least);
    return ok;
}

/*
 * ---- products ----
 *
 * By the built-in product and by OpenBLAS in turns. The last row of each dtype compares their times
 * for the shapes that are large enough for OpenBLAS, and says which one the table in ops/gemm.c
 * takes.
 */

enum { LEAST = 3, MOST = 15 };

struct times {
    double builtin, blas; /* seconds */
    double ratio;         /* of OpenBLAS's time to the other's; 0: no OpenBLAS */
};

/* Medians of up to 15 rounds within a second, in turns, since other load changes the speed. */
static bool products_in_turns(struct bench *bench, struct job *builtin, struct job *blas,
                              struct times *times)
{
    double a[MOST], b[MOST], ratio[MOST], rates[MOST];
    const int most = bench->quick ? 1 : MOST;
    int n = 0;
    for (double begun = bench_clock(); n < most && (n < LEAST || bench_since(begun, true) < 1);
         n++) {
        a[n] = job_step(builtin);
        b[n] = blas ? job_step(blas) : 0;
        ratio[n] = b[n] / a[n];
        rates[n] = bench_limit_now(bench, BENCH_F32);
        if (a[n] < 0 || b[n] < 0)
            return false;
    }
    if (rates[0] > 0)
        bench->limit[BENCH_F32] = bench_middle(n, rates);
    *times = (struct times){bench_middle(n, a), bench_middle(n, b), bench_middle(n, ratio)};
    return true;
}

static void products_print(const struct bench *bench, const struct row *row, sb_dtype dtype,
                           const char *by, double seconds)
{
    char way[40];
    const struct job_work work = job_product.work(row->line);
    snprintf(way, sizeof way, "%s, %s", sb_dtype_name(dtype), by);
    rows_print(bench, &(struct measured){.group = row->group,
                                         .name = row->name,
                                         .way = way,
                                         .seconds = seconds,
                                         .amount = work.operations,
                                         .unit = "FLOP/s",
                                         .limit = BENCH_F32,
                                         .work = dtype == SB_F32 ? work.operations : 0});
}

static bool products_row(struct bench *bench, const struct row *row, sb_dtype dtype,
                         struct times *times)
{
    char line[LINE];
    const char *const words = dtype == SB_F64 ? " f64=1" : "";
    struct job builtin, blas = {0};
    snprintf(line, sizeof line, "%s%s", row->line, words);
    bool ok = job_open(&builtin, line);
    snprintf(line, sizeof line, "%s%s blas=1", row->line, words);
    ok = ok && (!gemm_blas() || job_open(&blas, line)) &&
         products_in_turns(bench, &builtin, gemm_blas() ? &blas : NULL, times);
    job_close(&builtin);
    job_close(&blas);
    if (!ok)
        return false;
    products_print(bench, row, dtype, "built-in", times->builtin);
    if (times->ratio > 0)
        products_print(bench, row, dtype, "OpenBLAS", times->blas);
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
    double logs = 0;
    int compared = 0;
    for (int r = 0; r < ROWS; r++) {
        const struct row *row = &rows[r];
        struct times times;
        if (strcmp(row->group, "product") != 0 || !(row->where & (bench->quick ? QUICK : CPU)))
            continue;
        if (!products_row(bench, row, dtype, &times))
            return false;
        logs += row->where & LARGE && times.ratio > 0 ? log(times.ratio) : 0;
        compared += row->where & LARGE && times.ratio > 0;
    }
    if (compared)
        products_conclude(bench, dtype, exp(logs / compared));
    return true;
}

/* ---- all of them ---- */

static bool rows_one(struct bench *bench, const struct row *row, const struct way *way)
{
    char line[LINE];
    snprintf(line, sizeof line, "%s%s", row->line, way->words);
    const struct job_kind *kind = job_kind_of(line);
    if (!kind)
        return false;
    const struct job_work work = kind->work(line);
    return row->where & POSITIONS ? rows_by_position(bench, way, line, &work)
                                  : rows_median(bench, row, way, line, &work);
}

/* Before each group, so that other load on the machine slows both the limits and the rows. */
static bool rows_measure_limits(struct bench *bench)
{
    if (!bench_limits(bench))
        return false;
    const char *product = bench->gpu ? "matrix product" : "multiply-adds";
    rows_print_limit(bench, BENCH_COPY, "copy", "B/s");
    rows_print_limit(bench, BENCH_F32, product, "FLOP/s");
    rows_print_limit(bench, BENCH_BF16, product, "FLOP/s");
    return true;
}

bool bench_rows(struct bench *bench, const char *group)
{
    const unsigned device = bench->gpu ? GPU : CPU;
    if (!rows_measure_limits(bench))
        return false;
    if (strcmp(group, "product") == 0)
        return bench->gpu || (products_dtype(bench, SB_F32) && products_dtype(bench, SB_F64));
    for (int r = 0; r < ROWS; r++)
        for (int w = 0; w < WAYS; w++) {
            const struct row *row = &rows[r];
            const struct way *way = &ways[w];
            const bool measured = strcmp(row->group, group) == 0 &&
                                  strcmp(way->group, group) == 0 && way->where & device &&
                                  row->where & (bench->quick ? QUICK : device) &&
                                  (row->where & way->needs) == way->needs;
            if (measured && !rows_one(bench, row, way))
                return false;
        }
    return true;
}

bool bench_list(void)
{
    static const char *const marks[] = {"cpu", "gpu", "quick", "peers"};
    for (int r = 0; r < ROWS; r++) {
        const struct row *row = &rows[r];
        const struct job_kind *kind = job_kind_of(row->line);
        if (!kind)
            return false;
        const struct job_work work = kind->work(row->line);
        printf("%s\t%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\t", row->group, row->name, row->line,
               work.operations, work.bytes, work.memory, work.tokens);
        for (int m = 0; m < 4; m++)
            if (row->where >> m & 1)
                printf("%s ", marks[m]);
        putchar('\n');
    }
    return true;
}
