/* The communication of a training step: each rank sends as many bytes as the formula says. Ranks
   are threads here; tests/mpi/test_mpi.c has the table of teach/ranks.md, measured with MPI. */
#include "nn/shared_gradients.h"
#include "tests/support/mailbox.h"
#include "tests/support/parallel_run.h"
#include "tests/support/small_run.h"
#include <stdio.h>

enum { STEPS = 4 };

/* The numbers that a rank sends in an all-reduce of n numbers: one piece to each other rank, and
   the sum of its own piece to all of them. On all ranks together 2 (P - 1) n. */
static int64_t sum_numbers(int64_t n, int ranks, int rank)
{
    const int64_t piece = n * (rank + 1) / ranks - n * rank / ranks;
    return n - piece + (ranks - 1) * piece;
}

/* The gradient is sent in buckets. */
static int64_t gradient_numbers(const struct small_run *run, int ranks, int rank)
{
    int64_t numbers = 0, left = sb_parameters_size(run->weights);
    for (int64_t n; left > 0; left -= n) {
        n = left < shared_gradients_bucket ? left : shared_gradients_bucket;
        numbers += sum_numbers(n, ranks, rank);
    }
    return numbers;
}

/* The numbers that one attention over L keys sends in a ring. In forward, and again in backward
   (twice with recompute), all blocks of k and v pass through, except the next rank's own. In
   backward dk and dv of all other ranks follow. */
static int64_t ring_numbers(const struct settings *s, int64_t L, int rank)
{
    int64_t own, of_next;
    const int ranks = s->trainer.sequence_ranks;
    sb_piece_zigzag(L, ranks, rank, &own);
    sb_piece_zigzag(L, ranks, (rank + 1) % ranks, &of_next);
    const int times = s->model.transformer.recompute ? 3 : 2;
    return ranks == 1 ? 0 : 2 * s->model.transformer.width * (times * (L - of_next) + L - own);
}

/* Data parallelism over some or all ranks, and tensor parallelism. */
struct at {
    int ranks, rank, heads, head;
};

/* The first pair of a batch on a rank, and the end of its pairs; the same for all ranks of a ring.
 */
static int64_t pairs_begin(const struct small_run *run, const struct at *at, int next)
{
    const int cut = run->settings.trainer.sequence_ranks;
    return sb_trainer_batch(run->trainer)->items * (at->rank / cut + next) / (at->ranks / cut);
}

static int64_t pairs_of(const struct small_run *run, const struct at *at)
{
    return pairs_begin(run, at, 1) - pairs_begin(run, at, 0);
}

/* The longest sequence of a rank's pairs: on the CPU it leaves out the padding of the others. */
static int64_t longest_of(const struct small_run *run, const struct at *at, const char *sequence,
                          const char *lengths)
{
    const sb_batch *batch = sb_trainer_batch(run->trainer);
    const sb_tensor *t = sb_batch_get(batch, lengths);
    if (t->device != sb_device_cpu())
        return sb_batch_get(batch, sequence)->dim[1];
    int64_t longest = 0;
    for (int64_t i = pairs_begin(run, at, 0); i < pairs_begin(run, at, 1); i++) {
        const int32_t length = ((const int32_t *)t->data)[i];
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Of all attentions. */
static int64_t attention_numbers(const struct small_run *run, const struct at *at)
{
    const struct settings *s = &run->settings;
    const sb_batch *batch = sb_trainer_batch(run->trainer);
    const int place = at->rank % s->trainer.sequence_ranks;
    const int64_t source = ring_numbers(s, sb_batch_get(batch, "source")->dim[1], place);
    const int64_t target = ring_numbers(s, sb_batch_get(batch, "target_in")->dim[1], place);
    return pairs_of(run, at) * (s->model.transformer.encoder_layers * source +
                                s->model.transformer.decoder_layers * (target + source));
}

/* All sums of tensor parallelism: in forward of y after each attention and feed-forward, in
   backward of dx before each, and once more for the encoder's result. */
static int64_t border_numbers(const struct small_run *run, const struct at *at)
{
    const sb_transformer_options *o = &run->settings.model.transformer;
    const int64_t E = o->encoder_layers, D = o->decoder_layers;
    const int64_t row = pairs_of(run, at) * o->width;
    const int64_t source =
        sum_numbers(row * longest_of(run, at, "source", "source_lengths"), at->heads, at->head);
    const int64_t target =
        sum_numbers(row * longest_of(run, at, "target_in", "target_lengths"), at->heads, at->head);
    const int64_t forward = 2 * E * source + 3 * D * target;
    return (o->recompute ? 2 : 1) * forward + forward + D * source;
}

struct job {
    const struct settings *settings;
    sb_dtype dtype;
    int heads; /* ranks of tensor parallelism */
};

/* In f64: the loss and the dropout position of each batch; how many ranks have all gradients; with
 * tensor parallelism the norm, with the first non-finite parameter of each rank. */
static int64_t expected_bytes(const struct small_run *run, const struct job *job,
                              const struct at *at)
{
    const int64_t cut = at->heads > 1;
    const int64_t numbers = gradient_numbers(run, at->ranks, at->rank) +
                            attention_numbers(run, at) + border_numbers(run, at);
    return numbers * (int64_t)sb_dtype_bytes(job->dtype) +
           8 * job->settings->trainer.accumulate * sum_numbers(2, at->ranks, at->rank) +
           8 * sum_numbers(1, at->ranks, at->rank) +
           8 * cut * sum_numbers(1 + at->heads, at->heads, at->head);
}

/* If a rank fails, the others would wait forever. */
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
    const int rank = sb_communicator_rank(c);
    sb_communicator *heads = sb_communicator_split(c, rank / job->heads, rank);
    sb_communicator *batches = sb_communicator_split(c, rank % job->heads, rank);
    const struct at at = {sb_communicator_size(batches), sb_communicator_rank(batches), job->heads,
                          sb_communicator_rank(heads)};
    struct settings settings = *job->settings;
    struct small_run run;
    settings.model.transformer.ranks = heads;
    settings.trainer.communicator = batches;
    need(small_run_open(&run, &settings, NULL, job->dtype), c);
    for (int step = 0; step < STEPS; step++) {
        sb_trained trained;
        need(sb_trainer_step(run.trainer, &trained), c);
        const int64_t expected = expected_bytes(&run, job, &at);
        cr_expect(trained.sent == expected,
                  "step %d, rank %d of %d, heads over %d, sequences over %d: %lld bytes, not %lld",
                  step, rank, sb_communicator_size(c), job->heads, settings.trainer.sequence_ranks,
                  (long long)trained.sent, (long long)expected);
    }
    cr_expect(sb_communicator_sent(c) == mailbox_sent(c), "not all bytes are counted");
    small_run_close(&run);
    sb_communicator_close(batches);
    sb_communicator_close(heads);
}

/* A small model, trained on one batch a step. */
static struct settings settings(void)
{
    struct settings s = parallel_settings();
    s.trainer.accumulate = s.trainer.sequence_ranks = 1;
    return s;
}

CPU_TEST(communication, data_parallelism_sends_each_part_of_the_gradient_twice)
{
    for (int ranks = 2; ranks <= 5; ranks++)
        for (int variant = 0; variant < 3; variant++) {
            struct settings s = settings();
            s.trainer.accumulate = variant == 1 ? 3 : 1;
            shared_gradients_bucket = variant == 2 ? 50 : 1 << 19;
            mailbox_run(ranks, learn, &(struct job){&s, variant == 2 ? SB_F64 : SB_F32, 1});
        }
}

/* Lengths that are no multiple of the ranks, and empty pieces. */
CPU_TEST(communication, sequence_parallelism_sends_each_block_and_its_gradient_once)
{
    too_slow(SANITIZED, "it counts bytes of what shorter tests run too");
    static const int ranks[][2] = {{2, 2}, {3, 3}, {4, 4}, {4, 2}, {6, 2}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
            struct settings s = settings();
            s.task.max_length = i % 2 ? 5 : 21;
            s.trainer.sequence_ranks = ranks[i][1];
            s.model.transformer.recompute = recompute;
            mailbox_run(ranks[i][0], learn, &(struct job){&s, SB_F32, 1});
        }
}

CPU_TEST(communication, tensor_parallelism_sums_before_and_after_each_sharded_layer)
{
    static const int ranks[][2] = {{2, 2}, {3, 3}, {4, 4}, {4, 2}, {6, 3}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        for (int recompute = 0; recompute < 2; recompute++) {
            struct settings s = settings();
            s.model.transformer.width = 24;
            s.model.transformer.heads = 12;
            s.model.transformer.recompute = recompute;
            mailbox_run(ranks[i][0], learn, &(struct job){&s, SB_F32, ranks[i][1]});
        }
}
