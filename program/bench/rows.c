/*
 * The rows of the benchmark: names, the jobs that they measure, and where. Training and operations
 * have sizes at which other libraries are measured too (tests/bench/compare.py, gpu.py).
 */
#include "program/bench/rows.h"
#include "program/bench/job.h"
#include "program/bench/profile.h"
#include <stdio.h>
#include <string.h>

enum where {
    CPU = 1,
    GPU = 2,
    QUICK = 4,     /* instead of the others, to check that everything runs */
    PEERS = 8,     /* in tests/bench/compare.py too */
    COMPOSED = 16, /* attention also composed, which stores n^2 weights a head */
    BF16 = 32,     /* in bf16 too, on a GPU */
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
     PEERS},
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
};

/* Each row is measured in every way of its group that the device has. */
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
    {"decode", "int8", " int8=1", CPU, 0},
    {"operation", "f32", "", BOTH, 0},
    {"operation", "bf16", " bf16=1", GPU, BF16},
    {"attention", "f32, tiled", " tiled=1", BOTH, 0},
    {"attention", "f32, composed", " composed=1", BOTH, COMPOSED},
    {"attention", "bf16, tiled", " tiled=1 bf16=1", GPU, 0},
    {"attention", "bf16, composed", " composed=1 bf16=1", GPU, COMPOSED},
};

enum { ROWS = sizeof rows / sizeof rows[0], WAYS = sizeof ways / sizeof ways[0], LINE = 256 };

static double rows_step(void *context)
{
    const struct job *job = context;
    return job->kind->step(job->self);
}

/* The time of a step; negative on failure. */
static double rows_measure(struct bench *bench, const struct row *row, const struct way *way,
                           const char *line, enum bench_limit limit)
{
    const int64_t outside = bench_memory_live();
    struct job job;
    double seconds = job_open(&job, line) ? bench_median(bench, limit, rows_step, &job) : -1;
    if (seconds >= 0 && bench->profile && job.kind->weights &&
        !bench_profile(bench, row->name, way->name, rows_step, &job, job.kind->weights(job.self),
                       outside))
        seconds = -1;
    job_close(&job);
    return seconds;
}

static bool rows_one(struct bench *bench, const struct row *row, const struct way *way)
{
    char line[LINE];
    struct job_work work = {0};
    snprintf(line, sizeof line, "%s%s", row->line, way->words);
    const struct job_kind *kind = job_kind_of(line);
    if (!kind || !kind->work(line, &work))
        return false;
    const enum bench_limit limit = work.bytes > 0               ? BENCH_COPY
                                   : job_dtype(line) == SB_BF16 ? BENCH_BF16
                                                                : BENCH_F32;
    const double seconds = rows_measure(bench, row, way, line, limit);
    if (seconds < 0)
        return false;
    const double least = work.bytes > 0 ? work.bytes : work.operations;
    bench_print(bench, &(struct bench_row){.group = row->group,
                                           .name = row->name,
                                           .way = way->name,
                                           .seconds = seconds,
                                           .amount = work.tokens > 0 ? work.tokens : least,
                                           .unit = work.tokens > 0  ? "tokens/s"
                                                   : work.bytes > 0 ? "B/s"
                                                                    : "FLOP/s",
                                           .limit = limit,
                                           .work = least});
    return true;
}

bool bench_rows(struct bench *bench, const char *group)
{
    const unsigned device = bench->gpu ? GPU : CPU;
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
        struct job_work work = {0};
        const struct job_kind *kind = job_kind_of(row->line);
        if (!kind || !kind->work(row->line, &work))
            return false;
        printf("%s\t%s\t%s\t%.17g\t%.17g\t%.17g\t%.17g\t", row->group, row->name, row->line,
               work.operations, work.bytes, work.memory, work.tokens);
        for (int m = 0; m < 4; m++)
            if (row->where >> m & 1)
                printf("%s ", marks[m]);
        putchar('\n');
    }
    return true;
}
