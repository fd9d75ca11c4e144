/*
 * Attention by tiles and composed, in turns: the time of forward and backward, and the share of
 * the processor's peak, counting six products over the pairs that the mask keeps, 12 D operations
 * each; backward by tiles makes a seventh. The peak is measured between the turns.
 */
#include "autograd/tape.h"
#include "models/program/bench.h"
#include "ops/ops.h"
#include <stdio.h>

enum { ROUNDS = 3, SIZE = 64 };

enum kind { FULL, CAUSAL, WINDOW };

struct row {
    const char *name;
    int64_t n, heads;
    enum kind kind;
    double dropout;
    bool composed; /* measured too: it stores n^2 weights a head */
};

static const struct row rows[] = {
    {"full", 256, 8, FULL, 0, true},
    {"full", 512, 8, FULL, 0, true},
    {"full", 1024, 8, FULL, 0, true},
    {"full", 4096, 8, FULL, 0, true},
    {"full, dropout 0.1", 4096, 8, FULL, 0.1, true},
    {"full, one head", 4096, 1, FULL, 0, true},
    {"causal", 4096, 8, CAUSAL, 0, true},
    {"causal", 8192, 8, CAUSAL, 0, false},
    {"window of 256", 4096, 8, WINDOW, 0, true},
    {"window of 256", 8192, 8, WINDOW, 0, false},
    {"window of 256", 16384, 8, WINDOW, 0, false},
};

static double pairs(const struct row *r)
{
    double n = (double)r->n, window = 256;
    double kept = r->kind == FULL     ? n * n
                  : r->kind == CAUSAL ? n * (n + 1) / 2
                                      : n * window - window * (window - 1) / 2;
    return kept * (double)r->heads;
}

static sb_tensor *operand(const struct row *r, uint64_t seed)
{
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    sb_tensor *t = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(1, r->n, r->heads, SIZE)));
    float *x = sb_tensor_data(t);
    for (int64_t i = 0; x && i < sb_tensor_size(t); i++)
        x[i] = 2 * (float)(sb_random_bits(&random) >> 8) / (float)(1 << 24) - 1;
    return t;
}

/* The seconds of one forward and backward; negative on failure. */
static double measure(const struct row *r, sb_attention_algorithm algorithm)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *q = sb_requires_grad(operand(r, 1)), *k = sb_requires_grad(operand(r, 2));
    sb_tensor *v = sb_requires_grad(operand(r, 3)), *dy = operand(r, 4);
    sb_attention_options o = {.algorithm = algorithm, .dropout = r->dropout};
    if (r->kind == CAUSAL)
        o.mask = sb_mask_causal();
    if (r->kind == WINDOW)
        o.mask = sb_mask_window(255, 0);
    double begun = bench_now();
    bool ok = sb_backward_from(sb_attention(q, k, v, &o), dy);
    double seconds = bench_now() - begun;
    return sb_tape_end(&tape) && ok ? seconds : -1;
}

static bool bench_row(const struct row *r)
{
    double tiled[ROUNDS], composed[ROUNDS], peak[ROUNDS], ratio[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) {
        double t = measure(r, SB_TILED), c = r->composed ? measure(r, SB_COMPOSED) : 0;
        if (t < 0 || c < 0)
            return false;
        if (i < 0)
            continue;
        tiled[i] = t;
        composed[i] = c;
        ratio[i] = c / t;
        peak[i] = bench_peak();
    }
    double seconds = bench_median(ROUNDS, tiled);
    double rate = 12 * SIZE * pairs(r) / seconds, most = bench_median(ROUNDS, peak);
    printf("%-18s %6lld %6lld %10.1f", r->name, (long long)r->n, (long long)r->heads,
           1e3 * seconds);
    if (r->composed)
        printf(" %10.1f %8.2f", 1e3 * bench_median(ROUNDS, composed), bench_median(ROUNDS, ratio));
    else
        printf(" %10s %8s", "-", "-");
    printf(" %8.0f %7.0f %%\n", rate / 1e9, 100 * rate / most);
    return true;
}

bool bench_attention(void)
{
    printf("attention, forward and backward, heads of %d\n", SIZE);
    printf("%-18s %6s %6s %10s %10s %8s %8s %9s\n", "", "n", "heads", "tiled ms", "composed",
           "ratio", "GFLOP/s", "of peak");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!bench_row(&rows[i]))
            return false;
    return true;
}
