/* The trainer, what it says of a step, and when ranks agree. */
#include "models/training/agreement.h"
#include "models/training/diagnosis.h"
#include "nn/flat.h"
#include "tensor/failure.h"
#include "tests/support/mailbox.h"
#include "tests/support/small_run.h"
#include "tests/support/tiny.h"
#include <stdio.h>
#include <sys/resource.h>

static const sb_initial one = {SB_INITIAL_CONSTANT, 1};

TEST(trainer, two_accumulated_batches_equal_one_of_twice_the_size, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    s.model.transformer.dropout = 0;
    s.model.label_smoothing = 0.1;
    s.trainer.optimiser_kind = SB_OPTIMISER_SGD; /* Adam amplifies rounding errors */
    struct small_run two, twice;
    s.trainer.accumulate = 2;
    MUST(small_run_open(&two, &s, NULL, SB_F64));
    s.trainer.accumulate = 1;
    s.data.batch_pairs *= 2;
    MUST(small_run_open(&twice, &s, NULL, SB_F64));
    double a = small_run_train(&two, 5), b = small_run_train(&twice, 5);
    cr_expect(fabs(a - b) < 1e-12 * b, "losses %.17g and %.17g", a, b);
    double apart = test_relative(parameters_values(two.weights), parameters_values(twice.weights));
    cr_expect(apart < 1e-12, "weights differ by %g", apart);
    small_run_close(&two);
    small_run_close(&twice);
}

static uint64_t bits_with_threads(const struct settings *s, int threads)
{
    cr_assert(sb_set_threads(threads));
    struct small_run run = small_run(s, NULL);
    small_run_train(&run, 20);
    return small_run_bits(&run);
}

CPU_TEST(trainer, the_same_seed_gives_the_same_bits_with_any_number_of_threads)
{
    struct settings s = small_settings();
    int64_t usual = kernel_parallel_work;
    kernel_parallel_work = 1000; /* even a small model uses several threads */
    s.model.transformer.dropout = 0.2;
    s.data.batch_pairs = 16;
    uint64_t bits = bits_with_threads(&s, 1);
    cr_expect(bits_with_threads(&s, 2) == bits);
    cr_expect(bits_with_threads(&s, 4) == bits);
    kernel_parallel_work = usual;
    s.trainer.seed = 2;
    cr_expect(bits_with_threads(&s, 2) != bits, "another seed");
}

/* Gives up the steps that are asked about three times. */
static bool stop_at_third(void *count)
{
    return ++*(int *)count == 3;
}

TEST(trainer, a_step_that_is_given_up_leaves_no_trace, WHOLE_MODELS)
{
    struct settings s = small_settings();
    int count = 0;
    s.trainer.accumulate = 5;
    struct small_run whole = small_run(&s, NULL);
    s.trainer.stop = stop_at_third;
    s.trainer.stop_context = &count;
    struct small_run run = small_run(&s, NULL);
    sb_trained trained;
    cr_expect(!sb_trainer_step(run.trainer, &trained) && trained.stopped);
    EXPECT_ERROR("trainer: the step was given up after 3 of 5 batches");
    cr_expect(sb_trainer_steps(run.trainer) == 0);
    small_run_train(&run, 2);
    small_run_train(&whole, 2);
    cr_expect(!trained.skipped && small_run_bits(&run) == small_run_bits(&whole));
}

/* Leaves an infinite gradient in a parameter, to which the next step's is added. */
static void spoil_gradient(struct small_run *run, const char *name)
{
    TAPE(SB_RECORD);
    sb_tensor *w = sb_parameters_find(run->weights, name);
    MUST(sb_backward(sb_scale(sb_sum(w, SB_ALL, false), 1e300)));
    sb_tensor_set(sb_tensor_grad(w), 0, INFINITY);
}

TEST(trainer, a_step_whose_gradient_is_not_finite_is_skipped_and_named)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 2);
    uint64_t bits = small_run_bits(&run);
    sb_trained trained;
    spoil_gradient(&run, "output.bias");
    MUST(sb_trainer_step(run.trainer, &trained));
    cr_expect(trained.skipped && isfinite(trained.loss));
    EXPECT_ERROR("the gradient of \"output.bias\" is not finite");
    cr_expect(small_run_bits(&run) == bits && sb_trainer_steps(run.trainer) == 3);
    MUST(sb_trainer_step(run.trainer, &trained));
    cr_expect(!trained.skipped && small_run_bits(&run) != bits);
}

TEST(trainer, ten_skipped_steps_in_a_row_are_a_failure, KNOWN_KERNELS)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    sb_trained trained;
    for (int i = 0; i < 9; i++) {
        spoil_gradient(&run, "output.bias");
        MUST(sb_trainer_step(run.trainer, &trained) && trained.skipped);
    }
    spoil_gradient(&run, "output.bias");
    REFUSED("trainer: 10 steps in a row were skipped; optimiser_step: the gradient of \"outpu",
            sb_trainer_step(run.trainer, &trained));
    cr_expect(sb_trainer_step(run.trainer, &trained) && !trained.skipped, "%s", sb_error());
}

TEST(trainer, a_loss_that_is_not_finite_names_its_origin_and_keeps_the_batch)
{
    static const char *const name[] = {"output.weight", "encoder.layers.0.feed_norm.bias"};
    for (int i = 0; i < 2; i++) {
        struct settings s = small_settings();
        struct small_run run = small_run(&s, NULL);
        small_run_train(&run, 1);
        sb_tensor_set(sb_parameters_find(run.weights, name[i]), 1, i ? INFINITY : NAN);
        sb_trained trained;
        REFUSED("trainer: the loss is nan; the first value that is not finite is ",
                sb_trainer_step(run.trainer, &trained));
        EXPECT_ERROR(i ? "layer_norm input bias (8); so is one of the parameter"
                       : "linear_cross_entropy input weight (14, 8)");
        EXPECT_ERROR(name[i]);
        const sb_batch *batch = sb_trainer_batch(run.trainer);
        cr_assert(batch && batch->items == 4 &&
                  sb_tensor_dim(sb_batch_get(batch, "source"), 0) == 4);
        cr_expect(sb_trainer_steps(run.trainer) == 1);
    }
}

TEST(trainer, a_parameter_without_gradient_is_named_after_the_first_step)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    MUST(sb_parameters_add(run.weights, "forgotten", SB_SHAPE(3), one));
    sb_trained trained;
    MUST(sb_trainer_step(run.trainer, &trained));
    cr_expect_str_eq(trained.without_gradient, "forgotten");
    MUST(sb_trainer_step(run.trainer, &trained));
    cr_expect(trained.without_gradient == NULL);
}

static int64_t system_calls(void)
{
    return memory_in_use().system_calls;
}

TEST(trainer, from_the_third_step_of_a_shape_no_memory_is_requested, WHOLE_MODELS)
{
    struct settings s = small_settings();
    s.task.min_length = s.task.max_length;
    s.trainer.average_decay = 0.9;
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 2);
    int64_t calls = system_calls(), live = live_blocks();
    small_run_train(&run, 20);
    cr_expect(!POOL_CACHES || system_calls() == calls, "%lld calls",
              (long long)(system_calls() - calls));
    cr_expect(live_blocks() == live, "a step leaks");
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Page faults show all new memory, also what the library does not request. Matrices are so large
   that malloc would return them to the system between steps; the system may have a few faults of
   its own. */
CPU_TEST(trainer, after_the_third_step_no_new_pages_are_touched)
{
    enum { STEPS = 20, FEW = 5 * STEPS };
    struct settings s = small_settings();
    s.model.transformer.width = 64;
    s.data.batch_pairs = 64;
    s.task.min_length = s.task.max_length = 20;
    s.trainer.shares = 1; /* the stacks of threads are pages, too */
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 3);
    long faults = page_faults();
    small_run_train(&run, STEPS);
    faults = page_faults() - faults;
    cr_expect(!POOL_CACHES || faults <= FEW, "%ld in %d steps", faults, STEPS);
}

TEST(trainer, after_the_first_epoch_no_memory_is_requested, WHOLE_MODELS)
{
    struct settings s = small_settings();
    s.data.batch_pairs = 2; /* so many batches that shapes change with each epoch */
    sb_pairs *pairs = KEPT(small_pairs(test_brief() ? 60 : 250, 12));
    struct small_run run = small_run(&s, pairs);
    while (sb_data_tell(run.data).epoch == 0)
        small_run_train(&run, 1);
    int64_t calls = system_calls();
    while (sb_data_tell(run.data).epoch < (test_slow() ? 2 : 4))
        small_run_train(&run, 1);
    cr_expect(!POOL_CACHES || system_calls() == calls, "%lld calls",
              (long long)(system_calls() - calls));
}

TEST(trainer, memory_falls_during_backward)
{
    struct settings s = small_settings();
    s.model.transformer.encoder_layers = s.model.transformer.decoder_layers = 4;
    s.data.batch_pairs = 16;
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 1);
    const sb_batch *batch = sb_data_next(run.data);
    double before = (double)memory_in_use().live_bytes;
    TAPE(SB_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *loss = sb_seq2seq_loss(run.model, batch);
    double at_loss = (double)memory_in_use().live_bytes - before;
    sb_device_reset_peak(sb_device_in_use());
    MUST(sb_backward(loss));
    double peak = (double)memory_in_use().peak_bytes - before;
    double after = (double)memory_in_use().live_bytes - before;
    cr_expect(peak < 1.2 * at_loss, "%g bytes at the loss, then up to %g", at_loss, peak);
    cr_expect(after < 0.5 * at_loss, "%g bytes at the loss, %g after backward", at_loss, after);
}

/* An allocation fails in each step, which is then repeated. */
TEST(trainer, a_failed_step_can_be_repeated, WHOLE_MODELS)
{
    struct settings s = small_settings();
    s.trainer.accumulate = 2;
    s.data.batch_pairs = 3;
    sb_pairs *pairs = KEPT(small_pairs(10, 5));
    struct small_run plain = small_run(&s, pairs), disturbed = small_run(&s, pairs);
    small_run_train(&plain, 12);
    int failures = 0;
    for (int i = 0; i < 12; i++) {
        sb_trained trained;
        pool_fail_after(i * 97 % 701, false);
        bool ok = sb_trainer_step(disturbed.trainer, &trained);
        pool_fail_after(-1, false);
        if (ok)
            continue;
        EXPECT_ERROR("out of memory");
        cr_expect(sb_trainer_steps(disturbed.trainer) == i);
        MUST(sb_trainer_step(disturbed.trainer, &trained));
        failures++;
    }
    cr_expect(failures > (device_opened() ? 5 : 6), "%d steps failed", failures);
    cr_expect(small_run_bits(&plain) == small_run_bits(&disturbed));
}

static void expect_refused(sb_trainer_options options, const char *reason)
{
    struct settings s = small_settings();
    struct small_run run = small_run(&s, NULL);
    REFUSED(reason, sb_trainer_new(run.model, run.data, &options));
}

TEST(trainer, options_out_of_range_are_refused_by_name)
{
    expect_refused((sb_trainer_options){.accumulate = -1}, "trainer: accumulate is -1");
    expect_refused(
        (sb_trainer_options){.sequence_ranks = 2},
        "trainer: sequence_ranks is 2, not a divisor of 1 ranks; start with mpirun -n 2");
    expect_refused((sb_trainer_options){.optimiser_kind = (sb_optimiser_kind)9},
                   "trainer: there is no optimiser_kind 9");
    expect_refused((sb_trainer_options){.average_decay = 1}, "average: decay is 1");
    expect_refused((sb_trainer_options){.optimiser = {.beta1 = 2}}, "adam: beta1 is 2");
}

static void expect_not_restored(struct small_run *run, sb_trainer_state state, const char *reason)
{
    cr_expect(!sb_trainer_restore(run->trainer, &state), "no failure with \"%s\"", reason);
    EXPECT_ERROR(reason);
}

TEST(trainer, an_invalid_state_is_refused)
{
    struct settings s = small_settings();
    s.trainer.average_decay = 0.9;
    struct small_run run = small_run(&s, NULL);
    small_run_train(&run, 3);
    sb_trainer_state good = sb_trainer_save(run.trainer), bad = good;
    bad.steps = -1;
    expect_not_restored(&run, bad, "steps is -1");
    bad = good;
    bad.updates = 4;
    expect_not_restored(&run, bad, "updates is 4; it must be in 0..3");
    bad = good;
    bad.average_updates = -5;
    expect_not_restored(&run, bad, "average_updates is -5");
    bad = good;
    bad.skipped_in_a_row = 12;
    expect_not_restored(&run, bad, "skipped_in_a_row is 12");
    bad = good;
    bad.plateau.reduced = -1;
    expect_not_restored(&run, bad, "plateau.reduced is -1");
    bad = good;
    bad.data.batch = -1;
    expect_not_restored(&run, bad, "there is no batch -1");
    cr_expect(sb_trainer_restore(run.trainer, &good), "%s", sb_error());
    small_run_train(&run, 1);
}

CPU_TEST(trainer, null_is_named)
{
    sb_trained trained;
    REFUSED("trainer: model is NULL", sb_trainer_new(NULL, NULL, NULL));
    REFUSED("trainer_step: trainer is NULL", sb_trainer_step(NULL, &trained));
    cr_expect(!sb_trainer_batch(NULL) && !sb_trainer_model(NULL) && sb_trainer_steps(NULL) == 0);
    sb_trainer_free(NULL);
}

/* Symbols of other vocabularies have other ids. */
CPU_TEST(trainer, data_of_other_vocabularies_are_refused)
{
    const sb_seq2seq_options options = {
        .transformer = {.width = 8, .heads = 1, .encoder_layers = 1, .decoder_layers = 1}};
    sb_data *data = KEPT(sb_data_task("copy", 1)), *alike = KEPT(sb_data_task("reverse", 2)),
            *other = KEPT(sb_data_task("addition", 1));
    sb_parameters *weights = KEPT(sb_parameters_new(1));
    sb_seq2seq *model = KEPT(sb_seq2seq_new(weights, data, &options));
    sb_trainer *trainer = KEPT(sb_trainer_new(model, alike, NULL));
    cr_expect(trainer && !sb_trainer_new(model, other, NULL));
    EXPECT_ERROR("trainer: the data have other vocabularies than the model; make the data with the "
                 "vocabularies of the model");
    cr_expect(isnan(sb_evaluate_loss(model, other)));
    EXPECT_ERROR("evaluate: the data have other vocabularies than the model");
    sb_documents *documents = KEPT(sb_documents_new());
    cr_assert(sb_documents_add(documents, "text", "abba", 4, SB_DOCUMENTS_FILES));
    sb_vocabulary *ab = KEPT(sb_vocabulary_new(&(const char *){"ab"}, 1, NULL)),
                  *bc = KEPT(sb_vocabulary_new(&(const char *){"bc"}, 1, NULL));
    sb_windows *windows = KEPT(sb_windows_new(documents, ab, NULL));
    const sb_language_model_options one_layer = {
        .transformer = {.width = 8, .heads = 1, .decoder_layers = 1}};
    const sb_source source = sb_windows_as_source(windows);
    const sb_model text = sb_language_model_as_model(
                       KEPT(sb_language_model_for(KEPT(sb_parameters_new(1)), ab, &one_layer))),
                   texts = sb_language_model_as_model(
                       KEPT(sb_language_model_for(KEPT(sb_parameters_new(1)), bc, &one_layer)));
    cr_expect(KEPT(sb_trainer_for(&text, &source, NULL)) && !sb_trainer_for(&texts, &source, NULL));
    EXPECT_ERROR("trainer: the data have other vocabularies than the model");
}

/* ---- agreement ---- */

enum { RANKS = 3 };

struct outcome {
    struct rank_state state[RANKS];
    bool agreed[RANKS], alike[RANKS];
    char message[RANKS][256];
};

static void agree(sb_communicator *c, void *context)
{
    struct outcome *m = context;
    const int r = sb_communicator_rank(c);
    m->agreed[r] = agreement_check(c, &m->state[r], &m->alike[r]);
    snprintf(m->message[r], sizeof m->message[r], "%s", m->agreed[r] ? "" : sb_error());
}

/* All ranks are equal. */
static struct outcome equal_ranks(void)
{
    struct outcome m = {.agreed = {false}};
    for (int r = 0; r < RANKS; r++)
        m.state[r] = (struct rank_state){.version = "0.1.0",
                                         .task = "dates",
                                         .data = 7,
                                         .weights = 8,
                                         .steps = 9,
                                         .settings = settings_default()};
    return m;
}

/* Makes the ranks equal again. */
static void expect(struct outcome *m, const char *message)
{
    mailbox_run(RANKS, agree, m);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(m->agreed[r] == !message[0] && m->alike[r], "rank %d", r);
        cr_expect_str_eq(m->message[r], message);
    }
    *m = equal_ranks();
}

CPU_TEST(agreement, equal_ranks_agree)
{
    struct outcome m = equal_ranks();
    expect(&m, "");
}

CPU_TEST(agreement, all_ranks_report_the_first_difference)
{
    struct outcome m = equal_ranks();
    m.state[2].version = "0.0.9";
    m.state[2].data = 0;
    expect(&m, "rank 2 is softback 0.0.9, rank 0 is 0.1.0");
    m.state[1].task = "";
    expect(&m, "rank 1 trains on files, rank 0 on dates");
    m.state[1].settings.model.transformer.width = 64;
    expect(&m, "rank 1 has --width 64, rank 0 has 128");
    m.state[1].data = 5;
    expect(&m, "rank 1 has different data from rank 0");
    m.state[2].steps = 0;
    expect(&m, "rank 2 continues after step 0, rank 0 after 9");
    m.state[0].weights = 0;
    expect(&m, "rank 1 starts with different weights from rank 0");
    m.state[2].part = 1;
    expect(&m, "rank 2 starts with different weights from rank 0");
}

CPU_TEST(agreement, ranks_of_tensor_parallelism_have_different_parts)
{
    struct outcome m = equal_ranks();
    for (int r = 0; r < RANKS; r++) {
        m.state[r].head_ranks = 2;
        m.state[r].part = (uint64_t)(r % 2);
        m.state[r].threads = 3;
    }
    const struct outcome alike = m;
    expect(&m, "");
    m = alike;
    m.state[2].part = 1;
    expect(&m, "rank 2 starts with different weights from rank 0");
    m = alike;
    m.state[1].head_ranks = 1;
    expect(&m, "rank 1 has --split heads=1, rank 0 has heads=2");
    m = alike;
    m.state[2].threads = 4;
    expect(&m, "rank 2 has 4 threads, rank 0 has 3; --split heads needs equal --threads");
}

CPU_TEST(agreement, a_rank_that_cannot_begin_is_named_unless_none_can)
{
    struct outcome m = equal_ranks();
    m.state[2].failure = "pairs.tsv: cannot be opened";
    expect(&m, "rank 2: pairs.tsv: cannot be opened");
    m.state[0].failure = "out of memory";
    expect(&m, "rank 0: out of memory");
    for (int r = 0; r < RANKS; r++)
        m.state[r].failure = "m exists already";
    expect(&m, "m exists already");
    bool alike;
    m.state[0].failure = "m exists already";
    cr_expect(!agreement_check(NULL, &m.state[0], &alike) && alike);
    EXPECT_ERROR("m exists already");
    m = equal_ranks();
    cr_expect(agreement_check(NULL, &m.state[0], &alike));
}

/* ---- diagnosis ---- */

enum { PAIRS = 5, LONGEST = 6 };

static struct diagnosis diagnose(const struct tiny *tiny)
{
    struct diagnosis d;
    sb_batch *batch = tiny_batch(tiny->vocabulary, 1, PAIRS, LONGEST);
    const sb_model model = sb_seq2seq_as_model(tiny->model);
    MUST(diagnosis_make(&d, &model, batch));
    return d;
}

/* Multiplies all parameters whose names contain `part`. */
static void scale_parameters(sb_parameters *set, const char *part, double factor)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        sb_tensor *w = sb_parameters_get(set, i);
        for (int64_t e = 0; strstr(sb_parameters_name(set, i), part) && e < sb_tensor_size(w); e++)
            sb_tensor_set(w, e, factor * sb_tensor_get(w, e));
    }
}

static double mean(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* It counts all elements; `large` of them are 1e-3 or more. */
static void expect_histogram(const int64_t histogram[], int64_t elements, double large)
{
    int64_t sum = 0, counted = 0;
    for (int bin = 0; bin < DIAGNOSIS_BINS; bin++) {
        sum += histogram[bin];
        counted += bin >= 7 ? histogram[bin] : 0;
    }
    cr_expect(sum == elements, "%lld of %lld elements", (long long)sum, (long long)elements);
    cr_expect((double)counted == large, "%lld and %g", (long long)counted, large);
}

TEST(diagnosis, gradients_and_their_histograms_are_those_of_the_loss, KNOWN_KERNELS)
{
    for (int v = 0; tiny_variant(v); v += 3 * tiny_step()) {
        const sb_seq2seq_options *options = &tiny_variant(v)->options;
        struct tiny tiny = tiny_new(SB_F64, 2, options);
        FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
        cr_expect(!sb_tensor_grad(sb_parameters_get(tiny.weights, 0)), "a gradient is left");
        sb_batch *batch = tiny_batch(tiny.vocabulary, 1, PAIRS, LONGEST);
        TAPE(SB_RECORD);
        MUST(sb_backward(sb_seq2seq_loss(tiny.model, batch)));
        cr_expect(d.parameters == sb_parameters_count(tiny.weights));
        for (int64_t i = 0; i < d.parameters && options->label_smoothing == 0; i++) {
            const sb_tensor *dw = sb_tensor_grad(sb_parameters_get(tiny.weights, i));
            double sum = 0, large = 0;
            for (int64_t e = 0; dw && e < sb_tensor_size(dw); e++) {
                sum += sb_tensor_get(dw, e) * sb_tensor_get(dw, e);
                large += fabs(sb_tensor_get(dw, e)) >= 1e-3;
            }
            expect_histogram(d.histogram + i * DIAGNOSIS_BINS, dw ? sb_tensor_size(dw) : 0, large);
            cr_expect(fabs(d.gradient[i] - sqrt(sum)) <= 1e-9 * (1 + sqrt(sum)), "%s: %s, %g, %g",
                      tiny_variant(v)->name, sb_parameters_name(tiny.weights, i), d.gradient[i],
                      sqrt(sum));
        }
    }
}

/* If queries are 0, all scores are 0 (this variant has no score bias). */
TEST(diagnosis, equal_weights_are_even_and_not_saturated, KNOWN_KERNELS)
{
    sb_seq2seq_options options = tiny_options();
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    scale_parameters(tiny.weights, "query", 0);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
    cr_expect(d.heads == 3 * options.transformer.heads * options.transformer.encoder_layers);
    for (int64_t h = 0; h < d.heads; h++)
        cr_expect(fabs(d.evenness[h] - 1) < 1e-12 && d.saturated[h] == 0, "head %d: %g, %g", (int)h,
                  d.evenness[h], d.saturated[h]);
}

TEST(diagnosis, heads_with_large_scores_are_saturated, KNOWN_KERNELS)
{
    sb_seq2seq_options options = tiny_options();
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    scale_parameters(tiny.weights, "encoder.layers.1.self_attention.query", 1e4);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny);
    const int64_t H = options.transformer.heads;
    cr_expect(mean(H, d.saturated + H) > 0.9 && mean(H, d.evenness + H) < 0.1, "%g, %g",
              mean(H, d.saturated + H), mean(H, d.evenness + H));
    cr_expect(mean(H, d.saturated) < 0.5 && mean(H, d.evenness) > 0.2, "%g, %g",
              mean(H, d.saturated), mean(H, d.evenness));
}

TEST(diagnosis, dropout_is_not_applied, KNOWN_KERNELS)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.dropout = 0.5;
    struct tiny tiny = tiny_new(SB_F64, 2, &options);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    FREED_BY(diagnosis_free) struct diagnosis d = diagnose(&tiny), again = diagnose(&tiny);
    cr_expect(memcmp(d.gradient, again.gradient, (size_t)d.parameters * sizeof(double)) == 0);
}
