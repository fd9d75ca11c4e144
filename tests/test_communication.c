/* What travels in a step of training: each rank sends just as many bytes as the formula says.
   Ranks are threads here; tests/test_mpi.c has the table of teach/ranks.md, measured with MPI. */
#include "nn/shared_gradients.h"
#include "tests/mailbox.h"
#include "tests/parallel_run.h"
#include "tests/small_run.h"
#include <stdio.h>

enum { STEPS = 4 };

/* Numbers that a rank sends so that n are summed: the others' pieces, one to each, and the sum of
   its own piece to all of these. On all ranks together 2 (P - 1) n. */
static int64_t sum_numbers(int64_t n, int ranks, int rank)
{
    const int64_t piece = n * (rank + 1) / ranks - n * rank / ranks;
    return n - piece + (ranks - 1) * piece;
}

/* The gradient goes in buckets. */
static int64_t gradient_numbers(const struct small_run *run, int ranks, int rank)
{
    int64_t numbers = 0, left = sb_parameters_size(run->weights);
    for (int64_t n; left > 0; left -= n) {
        n = left < shared_gradients_bucket ? left : shared_gradients_bucket;
        numbers += sum_numbers(n, ranks, rank);
    }
    return numbers;
}

/* Numbers of one attention over L keys, in a ring. Forward, and again in backward (with recompute
   in both), blocks of k and v pass through: all but the next rank's, which need not come home. In
   backward dk and dv go after them, all the way. */
static int64_t ring_numbers(const struct settings *s, int64_t L, int rank)
{
    int64_t of_next;
    const int ranks = s->trainer.sequence_ranks;
    sb_piece_zigzag(L, ranks, (rank + 1) % ranks, &of_next);
    const int times = s->model.transformer.recompute ? 3 : 2;
    return ranks == 1 ? 0 : 2 * s->model.transformer.width * (times * (L - of_next) + L);
}

/* Of all attentions, for this rank's pairs of the batch. */
static int64_t attention_numbers(const struct small_run *run, const sb_batch *batch, int ranks,
                                 int rank)
{
    const struct settings *s = &run->settings;
    const int cut = s->trainer.sequence_ranks, shares = ranks / cut, share = rank / cut;
    const int64_t pairs = batch->pairs * (share + 1) / shares - batch->pairs * share / shares;
    const int64_t source = ring_numbers(s, batch->source->dim[1], rank % cut);
    const int64_t target = ring_numbers(s, batch->target_in->dim[1], rank % cut);
    return pairs * (s->model.transformer.encoder_layers * source +
                    s->model.transformer.decoder_layers * (target + source));
}

struct job {
    const struct settings *settings;
    sb_dtype dtype;
};

/* The loss and dropout's position are two numbers of f64 a batch; in the first step there is one
   for each parameter too. */
static int64_t expected_bytes(const struct small_run *run, const struct job *job, int ranks,
                              int rank)
{
    const int64_t first = sb_trainer_steps(run->trainer) == 1;
    const int64_t numbers = gradient_numbers(run, ranks, rank) +
                            attention_numbers(run, sb_trainer_batch(run->trainer), ranks, rank);
    return numbers * (int64_t)sb_dtype_bytes(job->dtype) +
           8 * job->settings->trainer.accumulate * sum_numbers(2, ranks, rank) +
           8 * first * sum_numbers(sb_parameters_count(run->weights), ranks, rank);
}

/* A rank that fails leaves others waiting. */
static void need(bool ok, const sb_communicator *c)
{
    if (ok)
        return;
    fprintf(stderr, "rank %d: %s\n", sb_communicator_rank(c), sb_error());
    abort();
}

static void learn(sb_communicator *c, void *context)
{
    const struct job *job = context;
    const int ranks = sb_communicator_size(c), rank = sb_communicator_rank(c);
    struct settings settings = *job->settings;
    struct small_run run;
    settings.trainer.communicator = c;
    need(small_run_open(&run, &settings, NULL, job->dtype), c);
    for (int step = 0; step < STEPS; step++) {
        sb_trained trained;
        need(sb_trainer_step(run.trainer, &trained), c);
        const int64_t expected = expected_bytes(&run, job, ranks, rank);
        cr_expect(trained.sent == expected,
                  "step %d, rank %d of %d, sequences over %d: %lld bytes, not %lld", step, rank,
                  ranks, settings.trainer.sequence_ranks, (long long)trained.sent,
                  (long long)expected);
    }
    cr_expect(sb_communicator_sent(c) == mailbox_sent(c), "not all was counted");
    small_run_close(&run);
}

CPU_CLAIM(communication, ranks_that_share_a_batch_send_their_part_of_the_gradient_twice)
{
    for (int ranks = 2; ranks <= 5; ranks++)
        for (int variant = 0; variant < 3; variant++) {
            struct settings s = parallel_settings();
            s.trainer.sequence_ranks = 1;
            s.trainer.accumulate = variant == 1 ? 3 : 1;
            shared_gradients_bucket = variant == 2 ? 50 : 1 << 19;
            mailbox_run(ranks, learn, &(struct job){&s, variant == 2 ? SB_F64 : SB_F32});
        }
}

/* Lengths that the ring does not divide, and pieces that are empty. */
CPU_CLAIM(communication, ranks_that_share_sequences_pass_each_block_on_once_and_its_gradient_home)
{
    static const int ranks[][2] = {{2, 2}, {3, 3}, {4, 4}, {4, 2}, {6, 2}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
            struct settings s = parallel_settings();
            s.task.max_length = i % 2 ? 5 : 21;
            s.trainer.accumulate = 1;
            s.trainer.sequence_ranks = ranks[i][1];
            s.model.transformer.recompute = recompute;
            mailbox_run(ranks[i][0], learn, &(struct job){&s, SB_F32});
        }
}
