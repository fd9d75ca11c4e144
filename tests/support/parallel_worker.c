/*
 * A rank for tests/mpi/test_mpi.c, under mpirun:  parallel_worker train | no-memory
 *
 *   train      sums, exchanges and training steps in f64 must give what this rank computes alone
 *   no-memory  rank 1 runs out of memory after some steps
 *
 * Rank 0 prints "passed"; a rank that finds a difference reports it and aborts the job.
 */
#include "tensor/communicator.h"
#include "tensor/pool.h"
#include "tensor/random.h"
#include "tests/support/parallel_run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sb_communicator *world;

static void expect(bool ok, const char *what)
{
    char text[1400];
    snprintf(text, sizeof text, "%s; %s", what, sb_error());
    if (!ok)
        sb_communicator_abort(world, "parallel_worker", text);
}

static double number(int rank, int64_t i)
{
    return (double)((rank * 7919 + i * 104729) % 1000003) * 1e-3 + 1e9 * (double)(rank % 2);
}

static void check_sums(void)
{
    static const int64_t size[] = {0, 1, 2, 3, 1001, 300007};
    const int rank = sb_communicator_rank(world), ranks = sb_communicator_size(world);
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        double *x = malloc((size_t)size[k] * sizeof *x + 1);
        for (int64_t i = 0; i < size[k]; i++)
            x[i] = number(rank, i);
        expect(sb_communicator_sum(world, SB_F64, size[k], x), "sum");
        for (int64_t i = 0; i < size[k]; i++) {
            double sum = number(0, i);
            for (int r = 1; r < ranks; r++)
                sum += number(r, i);
            expect(sum == x[i], "a sum does not follow the order of ranks");
        }
        free(x);
    }
}

static void check_messages(void)
{
    const int rank = sb_communicator_rank(world), ranks = sb_communicator_size(world);
    int block[5000], come[5000];
    for (int i = 0; i < 5000; i++)
        block[i] = 10000 * rank + i;
    const int from = (rank + ranks - 1) % ranks;
    sb_exchange *e =
        sb_exchange_start(world, (rank + 1) % ranks, block, sizeof block, from, come, sizeof come);
    expect(sb_exchange_finish(e) && come[4999] == 10000 * from + 4999, "an exchange");
    sb_communicator *half = sb_communicator_split(world, rank % 2, -rank);
    expect(sb_communicator_size(half) == (ranks + 1 - rank % 2) / 2,
           "the size of a split communicator");
    int last = rank;
    expect(sb_communicator_broadcast(half, 0, &last, sizeof last), "a broadcast");
    expect(last % 2 == rank % 2 && last + 2 >= ranks, "ranks are not ordered by keys");
    sb_communicator_close(half);
    expect(sb_communicator_barrier(world), "a barrier");
    expect(sb_communicator_processors(world) >= 1, "processors");
}

static void check_training(const char *kind, int pairs, int sequence_ranks, int heads)
{
    const bool cut = heads > 1; /* then each layer waits for the others: few of them, and steps */
    const int steps = cut ? 3 : PARALLEL_STEPS;
    struct settings s = parallel_settings();
    struct parallel_run together, alone;
    char text[200];
    s.data.batch_pairs = pairs;
    s.model.transformer.dropout = 0.1;
    s.model.transformer.width = s.model.transformer.feed_forward = 12;
    s.model.transformer.heads = sb_communicator_size(world) == 4 ? 4 : 6;
    s.model.transformer.encoder_layers = s.model.transformer.decoder_layers = cut ? 1 : 2;
    s.trainer.sequence_ranks = sequence_ranks;
    struct parallel_job job = {
        .kind = kind, .settings = &s, .dtype = SB_F64, .steps = steps, .heads = heads};
    parallel_run_make(&together, world, &job);
    expect(together.ok, "training together");
    job.heads = 1;
    parallel_run_make(&alone, NULL, &job);
    expect(alone.ok, "training alone");
    const struct parallel_compared apart = parallel_compare(&together, &alone);
    snprintf(text, sizeof text, "%s: gradients are %g apart, losses %g", kind, apart.gradients,
             apart.losses);
    expect(apart.gradients <= 1e-12 && apart.losses <= 1e-10, text);
    double bits[2] = {(double)(together.bits >> 32), (double)(uint32_t)together.bits};
    double sum[2] = {bits[0], bits[1]};
    expect(sb_communicator_sum(world, SB_F64, 2, sum), "a sum");
    const int ranks = sb_communicator_size(world);
    expect(sum[0] == ranks * bits[0] && sum[1] == ranks * bits[1], "ranks have different weights");
    parallel_run_free(&together);
    parallel_run_free(&alone);
}

/* An allocation fails on rank 1 during training. */
static void train_without_memory(void)
{
    const struct settings s = parallel_settings();
    struct parallel_run run;
    if (sb_communicator_rank(world) == 1)
        pool_fail_after(12000, true);
    parallel_run_make(
        &run, world,
        &(struct parallel_job){.settings = &s, .dtype = SB_F32, .steps = PARALLEL_STEPS});
    expect(run.ok, "training");
}

int main(int argc, char **argv)
{
    world = sb_communicator_world();
    expect(world && sb_communicator_watch(world, 20), "opening the world");
    if (argc == 2 && strcmp(argv[1], "no-memory") == 0) {
        train_without_memory();
    } else {
        check_sums();
        check_messages();
        const int all = sb_communicator_size(world);
        check_training("seq2seq", 7, 1, 1);
        check_training("seq2seq", 2, 1, 1);   /* one of three ranks has no pairs */
        check_training("seq2seq", 7, all, 1); /* sequence parallelism */
        check_training("seq2seq", 7, 1, all); /* tensor parallelism */
        if (all == 4) {
            check_training("seq2seq", 7, 2, 1);
            check_training("seq2seq", 7, 1, 2);
        }
        check_training("language_model", 7, 1, 1);
        check_training("language_model", 7, all, 1);
        check_training("language_model", 7, 1, all);
        check_training("classifier", 7, 1, 1);
        check_training("classifier", 7, 1, all);
    }
    if (sb_communicator_rank(world) == 0)
        puts("passed");
    sb_communicator_close(world);
    return 0;
}
