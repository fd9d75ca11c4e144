#include "nn/shared_gradients.h"
#include "tensor/reduction.h"
#include "tests/support/mailbox.h"
#include "tests/support/parallel_run.h"
#include "tests/support/small_run.h"
#include <stdio.h>

enum { MOST = 6 };

/* Numbers of every size, whose sum depends on the order. */
static double number(int rank, int64_t i)
{
    sb_random random = sb_random_new((uint64_t)(100 * rank + 1), SB_STREAM_USER);
    random.position = (uint64_t)i;
    const double x = 2 * sb_random_uniform(&random) - 1;
    return ldexp(x, (int)(i * 7 % 40));
}

static double get(sb_dtype dtype, const void *x, int64_t i)
{
    return dtype == SB_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void *numbers(sb_dtype dtype, int rank, int64_t n)
{
    void *x = KEPT(malloc((size_t)n * sb_dtype_bytes(dtype) + 1));
    for (int64_t i = 0; i < n; i++)
        if (dtype == SB_F32)
            ((float *)x)[i] = (float)number(rank, i);
        else
            ((double *)x)[i] = number(rank, i);
    return x;
}

/* ((x0 + x1) + x2) + ..., one number at a time. */
static double in_order(sb_dtype dtype, int ranks, int64_t i)
{
    double sum = number(0, i);
    float sum_f32 = (float)sum;
    for (int k = 1; k < ranks; k++) {
        sum += number(k, i);
        sum_f32 += (float)number(k, i);
    }
    return dtype == SB_F32 ? (double)sum_f32 : sum;
}

/* Several reductions of each rank are pending at a time, and progress in random order. */
static void expect_sums_in_order(sb_dtype dtype, int ranks, int sums, int64_t n)
{
    struct mailbox *m = mailbox_open(ranks);
    sb_communicator *c[MOST];
    struct reduction *sum[MOST][3];
    void *x[MOST][3];
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int r = 0; r < ranks; r++) {
        c[r] = mailbox_rank(m, r);
        for (int k = 0; k < sums; k++) {
            x[r][k] = numbers(dtype, r, n + k);
            sum[r][k] = reduction_new(c[r], sb_device_cpu(), dtype, n + k);
            MUST(sum[r][k] && reduction_start(sum[r][k], x[r][k]));
        }
    }
    for (int left = ranks * sums; left > 0;) {
        left = 0;
        for (int at = 0; at < ranks * sums; at++) {
            const int one = (int)sb_random_below(&random, (uint32_t)(ranks * sums));
            bool done, chosen_done;
            cr_assert(reduction_progress(sum[one / sums][one % sums], &chosen_done));
            cr_assert(reduction_progress(sum[at / sums][at % sums], &done));
            left += !done;
        }
    }
    for (int r = 0; r < ranks; r++) {
        for (int k = 0; k < sums; k++) {
            for (int64_t i = 0; i < n + k; i++)
                cr_assert(get(dtype, x[r][k], i) == in_order(dtype, ranks, i),
                          "%d ranks, %lld numbers: rank %d, number %lld", ranks, (long long)(n + k),
                          r, (long long)i);
            reduction_free(sum[r][k]);
        }
    }
    mailbox_close(m);
}

CPU_TEST(communicator, sums_are_added_in_the_order_of_ranks_and_all_have_the_same_bits)
{
    static const int64_t size[] = {0, 1, 2, 3, 7, 64, 1001, 10007};
    for (int ranks = 1; ranks <= 5; ranks++)
        for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
            expect_sums_in_order(SB_F32, ranks, 3, size[i]);
            expect_sums_in_order(SB_F64, ranks, 2, size[i]);
        }
}

struct summed {
    int64_t n;
    bool ok[MOST];
    double sum[MOST];
};

static void sum_up(sb_communicator *c, void *context)
{
    struct summed *s = context;
    const int rank = sb_communicator_rank(c);
    float *x = numbers(SB_F32, rank, s->n);
    s->ok[rank] = sb_communicator_sum(c, SB_F32, s->n, x);
    s->sum[rank] = (double)x[s->n - 1];
}

CPU_TEST(communicator, ranks_that_wait_for_each_other_get_the_sum)
{
    struct summed s = {.n = 5000};
    mailbox_run(4, sum_up, &s);
    for (int r = 0; r < 4; r++)
        cr_expect(s.ok[r] && s.sum[r] == in_order(SB_F32, 4, s.n - 1), "rank %d", r);
}

CPU_TEST(communicator, a_sum_sends_at_most_twice_the_other_ranks_share)
{
    for (int ranks = 2; ranks <= 5; ranks++) {
        const int64_t n = 60 * ranks;
        struct mailbox *m = mailbox_open(ranks);
        sb_communicator *c[MOST];
        struct reduction *sum[MOST];
        double x[MOST][60 * MOST] = {{0}};
        for (int r = 0; r < ranks; r++) {
            c[r] = mailbox_rank(m, r);
            sum[r] = reduction_new(c[r], sb_device_cpu(), SB_F64, n);
            cr_assert(reduction_start(sum[r], x[r]));
        }
        for (int i = 0; i < 3 * ranks; i++)
            cr_assert(reduction_progress(sum[i % ranks], &(bool){false}));
        for (int r = 0; r < ranks; r++) {
            cr_assert(reduction_finish(sum[r]));
            cr_expect(mailbox_sent(c[r]) == 2 * (ranks - 1) * n / ranks * 8, "%lld bytes",
                      (long long)mailbox_sent(c[r]));
            cr_expect(sb_communicator_sent(c[r]) == mailbox_sent(c[r]), "%lld bytes counted",
                      (long long)sb_communicator_sent(c[r]));
            reduction_free(sum[r]);
        }
        mailbox_close(m);
    }
}

struct counted {
    int64_t sent[MOST], of_part[MOST];
};

/* To itself, which sends nothing, to the next rank, and within a split communicator. */
static void send_some(sb_communicator *c, void *context)
{
    struct counted *counted = context;
    char out[100] = "", in[100];
    const int rank = sb_communicator_rank(c), size = sb_communicator_size(c);
    sb_communicator *part = KEPT(sb_communicator_split(c, rank / 2, rank));
    const int to[] = {rank, (rank + 1) % size}, from[] = {rank, (rank + size - 1) % size};
    for (int i = 0; i < 2; i++)
        cr_expect(sb_exchange_finish(sb_exchange_start(c, to[i], out, 100, from[i], in, 100)));
    cr_expect(
        sb_exchange_finish(sb_exchange_start(part, 1 - rank % 2, out, 7, 1 - rank % 2, in, 7)));
    counted->sent[rank] = sb_communicator_sent(c);
    counted->of_part[rank] = sb_communicator_sent(part);
}

CPU_TEST(communicator, a_rank_counts_the_bytes_that_it_sends_to_others)
{
    struct counted counted = {.sent = {0}};
    mailbox_run(4, send_some, &counted);
    for (int r = 0; r < 4; r++)
        cr_expect(counted.sent[r] == 107 && counted.of_part[r] == 7, "rank %d: %lld, %lld", r,
                  (long long)counted.sent[r], (long long)counted.of_part[r]);
}

struct passed {
    int got[MOST];
    bool ok[MOST];
};

/* The number of rank 0 is passed around the ring. */
static void pass_on(sb_communicator *c, void *context)
{
    struct passed *p = context;
    const int rank = sb_communicator_rank(c), size = sb_communicator_size(c);
    int held = rank, got = -1;
    p->ok[rank] = true;
    for (int i = 0; i < size - 1 && p->ok[rank]; i++) {
        sb_exchange *e = sb_exchange_start(c, (rank + 1) % size, &held, sizeof held,
                                           (rank + size - 1) % size, &got, sizeof got);
        p->ok[rank] = e && sb_exchange_finish(e);
        held = got;
    }
    int root = rank == 1 ? 77 : 0;
    p->ok[rank] = p->ok[rank] && sb_communicator_broadcast(c, 1, &root, sizeof root) &&
                  sb_communicator_barrier(c) && root == 77;
    p->got[rank] = held;
}

CPU_TEST(communicator, an_exchange_passes_blocks_around_a_ring)
{
    struct passed p = {.got = {0}};
    mailbox_run(4, pass_on, &p);
    for (int r = 0; r < 4; r++)
        cr_expect(p.ok[r] && p.got[r] == (r + 1) % 4, "rank %d has rank %d's", r, p.got[r]);
}

CPU_TEST(communicator, a_single_rank_sums_and_exchanges_with_itself)
{
    setenv("SOFTBACK_MPI", "/no/such/plug-in.so", 1);
    sb_communicator *world = KEPT(sb_communicator_world());
    sb_communicator *const c[] = {world, NULL};
    for (int i = 0; i < 2; i++) {
        double x = 3;
        int a = 5, b = 0;
        cr_expect(sb_communicator_rank(c[i]) == 0 && sb_communicator_size(c[i]) == 1);
        cr_expect(sb_communicator_sum(c[i], SB_F64, 1, &x) && x == 3);
        cr_expect(sb_communicator_broadcast(c[i], 0, &a, sizeof a) && a == 5);
        cr_expect(sb_communicator_barrier(c[i]) && sb_communicator_watch(c[i], 1));
        cr_expect(sb_exchange_finish(sb_exchange_start(c[i], 0, &a, sizeof a, 0, &b, sizeof b)));
        cr_expect(b == 5 && sb_communicator_processors(c[i]) == 0);
        sb_communicator *part = sb_communicator_split(c[i], 0, 0);
        cr_expect(sb_communicator_size(part) == 1);
        sb_communicator_close(part);
        cr_expect(sb_communicator_sent(c[i]) == 0);
    }
}

CPU_TEST(communicator, under_mpirun_a_missing_plug_in_is_a_failure)
{
    static const char *const sign[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    setenv("SOFTBACK_MPI", "/no/such/plug-in.so", 1);
    for (int i = 0; i < 3; i++) {
        setenv(sign[i], "2", 1);
        REFUSED("mpi: cannot open the plug-in /no/such/plug-in.so", sb_communicator_world());
        unsetenv(sign[i]);
    }
    setenv(sign[0], "1", 1);
    sb_communicator *world = KEPT(sb_communicator_world());
    cr_expect(world != NULL, "mpirun -n 1 needs no plug-in");
}

CPU_TEST(communicator, wrong_arguments_are_named)
{
    float x = 0;
    struct mailbox *m = mailbox_open(2);
    sb_communicator *c = mailbox_rank(m, 1);
    REFUSED("sum over ranks: numbers are f32 or f64, not bf16",
            sb_communicator_sum(c, SB_BF16, 1, &x));
    REFUSED("communicator_sum: n is -1", sb_communicator_sum(c, SB_F32, -1, &x));
    REFUSED("communicator_sum: x is NULL", sb_communicator_sum(c, SB_F32, 1, NULL));
    REFUSED("communicator_broadcast: there is no rank 2 among 2",
            sb_communicator_broadcast(c, 2, &x, sizeof x));
    REFUSED("exchange: there is no rank -1 among 2",
            sb_exchange_start(c, 0, &x, sizeof x, -1, &x, sizeof x));
    REFUSED("exchange: 4 bytes are sent and 2 expected",
            sb_exchange_start(NULL, 0, &x, 4, 0, &x, 2));
    REFUSED("exchange_finish: exchange is NULL", sb_exchange_finish(NULL));
    REFUSED("communicator_split: color is -1", sb_communicator_split(c, -1, 0));
    REFUSED("communicator_watch: seconds is 0; it must be at least 1", sb_communicator_watch(c, 0));
    mailbox_close(m);
}

/* The communication of a training step: each rank sends as many bytes as the formula says. Ranks
   are threads here; tests/mpi/test_mpi.c has the table of teach/ranks.md, measured with MPI. */

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
    sb_communicator *heads = KEPT(sb_communicator_split(c, rank / job->heads, rank));
    sb_communicator *batches = KEPT(sb_communicator_split(c, rank % job->heads, rank));
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
