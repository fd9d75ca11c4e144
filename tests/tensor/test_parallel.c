/* Threads and parallel loops. */
#include "nn/shared_gradients.h"
#include "tensor/hash.h"
#include "tensor/threads.h"
#include "tests/support/examples.h"
#include "tests/support/mailbox.h"
#include "tests/support/parallel_run.h"
#include "tests/support/small_run.h"
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Training on several ranks equals training on one: ranks are threads here, and processes under
   mpirun in tests/mpi/test_mpi.c. */

enum { MOST = 6 };

static int steps(void)
{
    return test_brief() ? 6 : 20;
}

/* Buckets that hold several parameters, and parameters that lie in several buckets. */
static void use_small_buckets(void)
{
    shared_gradients_bucket = 50;
}

/* Runs it on one rank, and on several, all of which must have the same bits. */
static void run_both(struct parallel_ranks *job, int ranks, struct parallel_run *one)
{
    mailbox_run(ranks, parallel_run_rank, job);
    for (int r = 0; r < ranks; r++) {
        cr_assert(job->run[r].ok, "rank %d of %d: %s", r, ranks, job->run[r].message);
        cr_expect(job->run[r].bits == job->run[0].bits, "rank %d of %d has different weights", r,
                  ranks);
        cr_expect(job->run[r].position == job->run[0].position, "rank %d: dropout", r);
        cr_expect(memcmp(job->run[r].loss, job->run[0].loss, sizeof one->loss) == 0, "rank %d", r);
    }
    struct parallel_job alone = job->one;
    alone.heads = 1;
    parallel_run_make(one, NULL, &alone);
    cr_assert(one->ok, "%s", one->message);
}

static void expect_as_on_one(struct parallel_job one_rank, int ranks, double gradients,
                             double losses)
{
    struct parallel_ranks job = {.one = one_rank};
    struct parallel_run one;
    job.one.steps = one_rank.steps > 0 ? one_rank.steps : steps();
    run_both(&job, ranks, &one);
    const struct parallel_compared apart = parallel_compare(&job.run[ranks - 1], &one);
    cr_expect(apart.gradients <= gradients, "%d ranks: gradients off by %g", ranks,
              apart.gradients);
    cr_expect(apart.losses <= losses, "%d ranks: losses off by %g", ranks, apart.losses);
    for (int r = 0; r < ranks; r++)
        parallel_run_free(&job.run[r]);
    parallel_run_free(&one);
}

CPU_TEST(parallel, data_parallelism_trains_like_one_rank)
{
    const struct settings s = parallel_settings();
    use_small_buckets();
    for (int ranks = 2; ranks <= 4; ranks++) { /* 7 pairs: shares are uneven */
        expect_as_on_one((struct parallel_job){.settings = &s, .dtype = SB_F64}, ranks, 1e-12,
                         1e-10);
    }
}

CPU_TEST(parallel, data_parallelism_drops_the_same_elements_as_one_rank)
{
    struct settings s = parallel_settings();
    s.model.transformer.dropout = 0.3;
    for (int ranks = 2; ranks <= 4; ranks++) {
        s.trainer.shares =
            ranks; /* for threads: of the whole batch on one rank, else of a rank's part */
        expect_as_on_one((struct parallel_job){.settings = &s, .dtype = SB_F64}, ranks, 1e-12,
                         1e-10);
    }
}

/* Sequence parallelism, with empty pieces of short sequences; alone, and with data
   parallelism. */
CPU_TEST(parallel, sequence_parallelism_trains_like_one_rank)
{
    static const int ranks[][2] = {{2, 2}, {3, 3}, {4, 4}, {4, 2}, {6, 2}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct settings s = parallel_settings();
        s.model.transformer.dropout = 0.2;
        s.trainer.sequence_ranks = ranks[i][1];
        expect_as_on_one((struct parallel_job){.settings = &s, .dtype = SB_F64}, ranks[i][0], 1e-12,
                         1e-10);
    }
}

/* Tensor parallelism, alone and with data parallelism. */
CPU_TEST(parallel, tensor_parallelism_trains_like_one_rank)
{
    static const int ranks[][2] = {{2, 2}, {3, 3}, {4, 4}, {4, 2}, {6, 3}, {4, 2}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct settings s = parallel_settings();
        s.model.transformer.width = 24;
        s.model.transformer.heads = 12;
        s.model.transformer.dropout = 0.2;
        s.data.batch_pairs = i == 5 ? 1 : 7; /* one: two of the ranks have none */
        s.trainer.accumulate = i == 0 || i == 5 ? 2 : 1;
        expect_as_on_one(
            (struct parallel_job){.settings = &s, .dtype = SB_F64, .heads = ranks[i][1]},
            ranks[i][0], 1e-12, 1e-10);
    }
}

static void vary(sb_transformer_options *o, int variant)
{
    static const sb_positions positions[] = {SB_POSITIONS_ALIBI,   SB_POSITIONS_RELATIVE,
                                             SB_POSITIONS_ROTARY,  SB_POSITIONS_LEARNED,
                                             SB_POSITIONS_BUCKETS, SB_POSITIONS_HALVES};
    o->width = o->feed_forward = 16;
    o->heads = 8;
    o->dropout = 0.2;
    o->positions = positions[variant % 6];
    o->key_heads = variant % 2 ? 4 : 8;
    o->gated = variant % 2;
    o->head_size = variant % 3 == 1 ? 4 : 0;
    o->biases = (sb_biases)(variant / 2 % 3);
    o->embedding_norm = variant % 4 == 3;
    o->norm_place = (sb_norm_place)(variant / 2 % 3);
    o->qk_norm = variant % 3 == 1; /* where heads are not of size 2 */
    o->norm_kind = variant / 4 % 2 ? SB_NORM_KIND_RMS : SB_NORM_KIND_LAYER;
    o->score = (sb_score)(variant % 3);
    o->recompute = variant >= 4;
}

CPU_TEST(parallel, tensor_parallelism_works_for_every_kind_of_layer)
{
    sb_pairs *pairs = KEPT(small_pairs(40, 6));
    for (int variant = 0; variant < 8; variant++) {
        struct settings s = parallel_settings();
        vary(&s.model.transformer, variant);
        s.model.tie_embeddings = variant % 2;
        s.model.share_embeddings = variant % 3 == 0;
        expect_as_on_one(
            (struct parallel_job){
                .settings = &s, .pairs = pairs, .dtype = SB_F64, .heads = variant % 2 ? 4 : 2},
            4, 1e-12, 1e-10);
    }
}

CPU_TEST(parallel, in_f32_ranks_differ_by_rounding_only)
{
    const struct settings s = parallel_settings();
    for (int ranks = 2; ranks <= 4; ranks++) {
        expect_as_on_one((struct parallel_job){.settings = &s, .dtype = SB_F32}, ranks,
                         8 * 1.1920929e-7, 1e-4);
    }
    struct settings by_heads = s;
    by_heads.model.transformer.heads = 4;
    for (int heads = 2; heads <= 4; heads += 2) {
        expect_as_on_one(
            (struct parallel_job){.settings = &by_heads, .dtype = SB_F32, .heads = heads}, 4,
            8 * 1.1920929e-7, 1e-4);
    }
}

CPU_TEST(parallel, a_rank_without_a_pair_takes_part)
{
    struct settings s = parallel_settings();
    s.data.batch_pairs = 2;
    use_small_buckets();
    sb_pairs *pairs = KEPT(small_pairs(7, 6)); /* batches have 2 pairs, one has 1 */
    for (int ranks = 3; ranks <= 5; ranks++) {
        expect_as_on_one((struct parallel_job){.settings = &s, .pairs = pairs, .dtype = SB_F64},
                         ranks, 1e-12, 1e-10);
    }
}

CPU_TEST(parallel, accumulated_batches_are_shared_too)
{
    struct settings s = parallel_settings();
    s.trainer.accumulate = 3;
    s.data.batch_pairs = 2;
    use_small_buckets();
    sb_pairs *pairs = KEPT(small_pairs(7, 6));
    for (int ranks = 2; ranks <= 4; ranks++) {
        expect_as_on_one((struct parallel_job){.settings = &s, .pairs = pairs, .dtype = SB_F64},
                         ranks, 1e-12, 1e-10);
    }
}

/* Tied and shared tables get gradients in several nodes; recomputed layers are one node. */
CPU_TEST(parallel, gradients_of_shared_parameters_are_complete_before_they_are_summed)
{
    sb_pairs *pairs = KEPT(small_pairs(40, 6));
    use_small_buckets();
    for (int variant = 0; variant < 4; variant++) {
        struct settings s = parallel_settings();
        s.model.tie_embeddings = variant >= 1;
        s.model.share_embeddings = variant >= 2;
        s.model.transformer.recompute = variant == 3;
        expect_as_on_one(
            (struct parallel_job){.settings = &s, .pairs = pairs, .dtype = SB_F64, .steps = 5}, 3,
            1e-12, 1e-10);
    }
}

/* Trains on so many ranks; the bits that each of them must have. */
static uint64_t bits_of(const struct settings *s, int ranks, int heads)
{
    struct parallel_ranks job = {
        .one = {.settings = s, .dtype = SB_F32, .steps = 10, .heads = heads}};
    mailbox_run(ranks, parallel_run_rank, &job);
    const uint64_t bits = job.run[0].bits;
    for (int r = 0; r < ranks; r++) {
        cr_assert(job.run[r].ok, "%s", job.run[r].message);
        cr_expect(job.run[r].bits == bits && job.run[r].position > 0 &&
                      job.run[r].position == job.run[0].position,
                  "rank %d", r);
    }
    for (int r = 0; r < ranks; r++)
        parallel_run_free(&job.run[r]);
    return bits;
}

CPU_TEST(parallel, the_same_number_of_ranks_gives_the_same_bits_again)
{
    struct settings s = parallel_settings();
    s.model.transformer.dropout = 0.1;
    cr_expect(bits_of(&s, 3, 1) == bits_of(&s, 3, 1));
    cr_expect(bits_of(&s, 4, 2) == bits_of(&s, 4, 2));
    cr_expect(bits_of(&s, 4, 2) != bits_of(&s, 4, 1), "heads are not split");
}

struct spoiled {
    const struct settings *settings;
    bool ok[MOST], skipped[MOST];
    char without[MOST][32];
    uint64_t before[MOST], after[MOST];
};

/* Rank 1 has an infinite gradient, to which that of the step is added. */
static void spoil(sb_communicator *c, void *context)
{
    struct spoiled *s = context;
    const int rank = sb_communicator_rank(c);
    struct settings settings = *s->settings;
    settings.trainer.communicator = c;
    struct small_run run;
    sb_trained trained;
    if (!small_run_open(&run, &settings, NULL, SB_F32))
        return;
    static const sb_initial one = {SB_INITIAL_CONSTANT, 1};
    sb_parameters_add(run.weights, "forgotten", SB_SHAPE(3), one);
    s->ok[rank] = sb_trainer_step(run.trainer, &trained);
    snprintf(s->without[rank], 32, "%s", trained.without_gradient ? trained.without_gradient : "");
    s->before[rank] = small_run_bits(&run);
    if (rank == 1) {
        sb_tensor *w = sb_parameters_find(run.weights, "output.bias");
        TAPE(SB_RECORD);
        sb_backward(sb_scale(sb_sum(w, SB_ALL, false), 1e300));
        sb_tensor_set(sb_tensor_grad(w), 0, INFINITY);
    }
    s->ok[rank] = sb_trainer_step(run.trainer, &trained) && s->ok[rank];
    s->skipped[rank] = trained.skipped;
    s->after[rank] = small_run_bits(&run);
    small_run_close(&run);
}

CPU_TEST(parallel, a_gradient_that_is_not_finite_on_one_rank_is_skipped_by_all)
{
    const struct settings settings = parallel_settings();
    struct spoiled s = {.settings = &settings};
    mailbox_run(3, spoil, &s);
    for (int r = 0; r < 3; r++) {
        cr_expect(s.ok[r] && s.skipped[r] && s.after[r] == s.before[0], "rank %d", r);
        cr_expect_str_eq(s.without[r], "forgotten");
    }
}

struct begun {
    bool ok[MOST];
    int64_t sent[MOST]; /* bytes, at the end of backward */
    double sum[MOST];   /* of the gradients' first numbers */
};

/* Backward of b (a x), which finishes b first; each is a bucket. */
static void begin_sums(sb_communicator *c, void *context)
{
    static const sb_initial one = {SB_INITIAL_CONSTANT, 1};
    struct begun *begun = context;
    const int rank = sb_communicator_rank(c);
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_tensor *a = sb_parameters_add(set, "a", SB_SHAPE(100), one);
    sb_tensor *b = sb_parameters_add(set, "b", SB_SHAPE(100), one);
    struct shared_gradients *shared = shared_gradients_new(c, set);
    sb_tape tape;
    begun->ok[rank] = shared && shared_gradients_begin(shared);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_multiply(b, sb_scale(a, rank + 1));
    begun->ok[rank] &= backward_heard(sb_sum(y, SB_ALL, false), shared_gradients_listener(shared));
    begun->ok[rank] &= sb_tape_end(&tape);
    begun->sent[rank] = mailbox_sent(c);
    begun->ok[rank] &= shared_gradients_finish(shared, NULL);
    begun->sum[rank] = sb_tensor_get(sb_tensor_grad(a), 0) + sb_tensor_get(sb_tensor_grad(b), 99);
    shared_gradients_free(shared);
}

CPU_TEST(parallel, sums_begin_while_backward_runs)
{
    struct begun begun = {.ok = {false}};
    shared_gradients_bucket = 100;
    mailbox_run(2, begin_sums, &begun);
    for (int r = 0; r < 2; r++) {
        cr_expect(begun.ok[r] && begun.sum[r] == 2 * (1 + 2), "rank %d: %g", r, begun.sum[r]);
        cr_expect(begun.sent[r] >= 2 * 50 * 4, "half of each bucket is not sent");
    }
}

struct evaluated {
    const sb_pairs *pairs;
    int heads; /* ranks of tensor parallelism */
    sb_dtype dtype;
    double loss[MOST], error[MOST];
    uint64_t texts[MOST]; /* a hash */
};

/* Trains a little, each rank on its own, and evaluates together. */
static void evaluate(sb_communicator *c, void *context)
{
    struct evaluated *e = context;
    const int rank = sb_communicator_rank(c);
    const int64_t n = sb_pairs_count(e->pairs);
    struct settings settings = parallel_settings();
    sb_communicator *ranks = sb_communicator_split(c, rank / e->heads, rank);
    sb_communicator *others = KEPT(sb_communicator_split(c, rank % e->heads, rank));
    struct small_run run;
    sb_text_score score = {0};
    char *text[64] = {NULL};
    settings.model.transformer.ranks = ranks;
    e->loss[rank] = NAN;
    if (!small_run_open(&run, &settings, e->pairs, e->dtype))
        return;
    small_run_train(&run, 5);
    const sb_model model = sb_seq2seq_as_model(run.model);
    const sb_source source = sb_data_as_source(run.data);
    sb_evaluation evaluation;
    if (sb_evaluate(&model, &source, NULL, others, &evaluation))
        e->loss[rank] = evaluation.loss;
    const bool ok = translation_score(others, run.model, e->pairs, NULL, &score, text);
    for (int64_t i = 0; ok && i < n; i++) {
        e->texts[rank] = hash_add(e->texts[rank], text[i], strlen(text[i]));
        sb_free(text[i]);
    }
    e->error[rank] = ok ? score.error : NAN;
    small_run_close(&run);
    sb_communicator_close(ranks);
}

CPU_TEST(parallel, an_evaluation_on_several_ranks_has_the_same_bits)
{
    sb_pairs *pairs = KEPT(small_pairs(50, 6));
    for (int ranks = 2; ranks <= 5; ranks++) {
        struct evaluated one = {.pairs = pairs, .heads = 1, .dtype = SB_F32}, e = one;
        evaluate(NULL, &one);
        mailbox_run(ranks, evaluate, &e);
        MUST(one.loss[0] > 0 && one.error[0] > 0);
        for (int r = 0; r < ranks; r++)
            cr_expect(e.loss[r] == one.loss[0] && e.error[r] == one.error[0] &&
                          e.texts[r] == one.texts[0],
                      "%d ranks: rank %d", ranks, r);
    }
}

/* Ranks of tensor parallelism decode the same texts step by step, with the same bits. */
CPU_TEST(parallel, tensor_parallelism_evaluates_like_one_rank)
{
    sb_pairs *pairs = KEPT(small_pairs(50, 6));
    struct evaluated one = {.pairs = pairs, .heads = 1, .dtype = SB_F64}, e = one;
    e.heads = 2;
    evaluate(NULL, &one);
    mailbox_run(4, evaluate, &e);
    MUST(one.loss[0] > 0 && one.error[0] > 0);
    for (int r = 0; r < 4; r++) {
        cr_expect(e.loss[r] == e.loss[0] && e.texts[r] == one.texts[0], "rank %d", r);
        cr_expect(fabs(e.loss[r] - one.loss[0]) < 1e-10 && e.error[r] == one.error[0], "rank %d",
                  r);
    }
}

/* Expects this message from a trainer that fails. */
static void refuse(sb_communicator *c, void *context)
{
    char(*message)[128] = context;
    const int rank = sb_communicator_rank(c);
    struct settings s = parallel_settings();
    struct small_run run;
    s.model.transformer.ranks = c;
    s.trainer.communicator = c;
    s.trainer.sequence_ranks = 2;
    if (!small_run_open(&run, &s, NULL, SB_F32))
        snprintf(message[rank], 128, "%s", sb_error());
}

CPU_TEST(parallel, tensor_and_sequence_parallelism_exclude_each_other)
{
    char message[2][128] = {"", ""};
    mailbox_run(2, refuse, message);
    for (int r = 0; r < 2; r++)
        cr_expect_str_eq(message[r],
                         "trainer: sequence and tensor parallelism cannot be combined; use one");
}

/* The pool of threads: regions with one thread do not use it, and where it has too few, the rest
 * compute. */

static void run_example(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    example_must_run(e, shapes, &in);
}

/* Small and large inputs, forwards and backwards. */
CPU_TEST(threads, a_region_of_one_thread_does_not_use_the_pool)
{
    cr_assert(sb_set_threads(1));
    const int64_t before = threads_entered();
    const int64_t usual = kernel_parallel_work;
    for_each_example(run_example);
    kernel_parallel_work = 0; /* all regions would be divided */
    for_each_example_once(run_example);
    kernel_parallel_work = usual;
    cr_expect(threads_entered() == before, "%lld parallel regions",
              (long long)(threads_entered() - before));
}

/* The memory of the process may grow by so many bytes. */
static bool limit_memory(size_t bytes)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const bool ok = file && fscanf(file, "%lu", &pages) == 1;
    if (file)
        fclose(file);
    const struct rlimit limit = {pages * (size_t)sysconf(_SC_PAGESIZE) + bytes, RLIM_INFINITY};
    return ok && setrlimit(RLIMIT_AS, &limit) == 0;
}

/* In a child: threads that are asked for are refused with a sentence, and a large sum, for which
   kernels would take two threads, is computed by one. Its exit code: 0 if so. */
static int compute_without_memory(void)
{
    sb_tensor *x = sb_tensor_full(SB_F32, SB_SHAPE(1000, 1000), 0.5);
    const int threads = sb_threads();
    if (!x || !limit_memory(1 << 20))
        return 2;
#ifndef _OPENMP
    return sb_set_threads(1024) && threads == 1 ? 0 : 6; /* they are made when they are needed */
#endif
    const bool refused = !sb_set_threads(64) && sb_threads() == threads &&
                         strstr(sb_error(), "threads: 64 threads cannot be made; ask for fewer");
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double sum = sb_tensor_value(sb_sum(x, SB_ALL, false));
    const bool ended = sb_tape_end(&tape);
    return !refused ? 3 : !ended ? 4 : sum == 500000 ? 0 : 5;
}

CPU_TEST(threads, those_that_cannot_be_made_are_an_ordinary_error)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(compute_without_memory());
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

CPU_TEST(threads, numbers_out_of_range_are_refused)
{
    REFUSED("threads: 0 is not in 1..1024", sb_set_threads(0));
    REFUSED("threads: 1025 is not in 1..1024", sb_set_threads(1025));
}
