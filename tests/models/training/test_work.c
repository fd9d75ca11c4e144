/*
 * What a training step, an evaluation and a decoding step ask of a CUDA device: operations that the
 * host queues, kernels, waits of the host and bytes. A result that is right can still cost twice as
 * many launches; so the counts are asserted, for one small model, and only the emulator counts.
 *
 * A count that falls is lowered here with the change that lowers it.
 */
#include "nn/flat.h"
#include "tests/support/decoding.h"

/* The device does not fill new memory with NaN here, which is work too, and cublasLt refuses
   nothing. */
static void work_begin(void)
{
    setenv("SOFTBACK_EMULATOR_ORDER", "forward", 1);
    test_begin();
    too_slow(RACES, "it counts what other tests run too");
    device_needed();
    sb_use_device(device_cuda());
    device_cuda()->pool->poison = NULL;
}

#define WORK_TEST(name) TEST_AFTER(work_begin, work, name)

/* The counts are asserted in the order of the structure: operations queued, graphs, kernels, waits,
   bytes up, bytes down. */
static void print_work(const char *what, const struct emulator_work *w)
{
    cr_log_info("%s: %lld operations queued, %lld graphs, %lld kernels, %lld waits, %lld bytes up, "
                "%lld down",
                what, (long long)w->queued, (long long)w->graphs, (long long)w->kernels,
                (long long)w->waits, (long long)w->uploaded, (long long)w->downloaded);
}

static struct emulator_work work_since(const struct emulator_work *before)
{
    const struct emulator_work now = device_work();
    return (struct emulator_work){
        now.queued - before->queued,     now.graphs - before->graphs,
        now.kernels - before->kernels,   now.waits - before->waits,
        now.uploaded - before->uploaded, now.downloaded - before->downloaded};
}

static void expect_work(const char *what, const struct emulator_work *w,
                        const struct emulator_work *most)
{
    print_work(what, w);
    cr_expect(w->queued <= most->queued, "%s queues %lld operations, not %lld", what,
              (long long)w->queued, (long long)most->queued);
    cr_expect(w->graphs == most->graphs, "%s launches %lld graphs, not %lld", what,
              (long long)w->graphs, (long long)most->graphs);
    cr_expect(w->kernels <= most->kernels, "%s runs %lld kernels, not %lld", what,
              (long long)w->kernels, (long long)most->kernels);
    cr_expect(w->waits <= most->waits, "%s waits %lld times, not %lld", what, (long long)w->waits,
              (long long)most->waits);
    cr_expect(w->uploaded <= most->uploaded, "%s uploads %lld bytes, not %lld", what,
              (long long)w->uploaded, (long long)most->uploaded);
    cr_expect(w->downloaded <= most->downloaded, "%s downloads %lld bytes, not %lld", what,
              (long long)w->downloaded, (long long)most->downloaded);
}

/* The work of step number `step`, from 1; every batch has the same shape. */
static struct emulator_work work_of_step(sb_precision precision, sb_graphs graphs, int step)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.precision = precision;
    const sb_data_options data_options = {.batch_pairs = 4, .seed = 5};
    const sb_task_options task = {.max_length = 4};
    sb_data *data = KEPT(sb_data_task_with(SB_TASK_COPY, &task, &data_options));
    sb_parameters *weights = KEPT(sb_parameters_new(3));
    sb_seq2seq *model = KEPT(sb_seq2seq_new(weights, data, &options));
    sb_trainer *trainer =
        KEPT(sb_trainer_new(model, data, &(sb_trainer_options){.seed = 7, .graphs = graphs}));
    struct emulator_work before = device_work();
    for (int i = 0; i < step; i++) {
        sb_trained trained;
        before = device_work();
        MUST(sb_trainer_step(trainer, &trained));
    }
    const struct emulator_work work = work_since(&before);
    return work;
}

WORK_TEST(of_an_eager_training_step)
{
    const struct emulator_work work = work_of_step(SB_PRECISION_F32, SB_GRAPHS_OFF, 4);
    expect_work("an eager step", &work, &(struct emulator_work){274, 0, 259, 2, 1188, 20});
}

WORK_TEST(of_a_training_step_as_a_graph)
{
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    const struct emulator_work work = work_of_step(SB_PRECISION_F32, SB_GRAPHS_AUTO, 4);
    expect_work("a step as a graph", &work, &(struct emulator_work){20, 1, 260, 1, 1316, 32});
}

/* In bf16 the parameters are cast in lists, not one by one. */
WORK_TEST(of_a_training_step_in_bf16)
{
    const struct emulator_work eager = work_of_step(SB_PRECISION_BF16, SB_GRAPHS_OFF, 4);
    expect_work("an eager step in bf16", &eager, &(struct emulator_work){261, 0, 246, 2, 1188, 20});
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    const struct emulator_work graph = work_of_step(SB_PRECISION_BF16, SB_GRAPHS_AUTO, 4);
    expect_work("a step in bf16 as a graph", &graph,
                &(struct emulator_work){20, 1, 247, 1, 1316, 32});
}

/* A model whose parameters lie in one buffer, as those of a model from a file. */
static struct tiny joined_model(void)
{
    struct tiny tiny = tiny_new(SB_F32, 1, NULL);
    MUST(parameters_join(tiny.weights));
    return tiny;
}

WORK_TEST(of_an_evaluation)
{
    struct tiny tiny = joined_model();
    sb_pairs *pairs = sb_pairs_new();
    for (int i = 0; i < 8; i++)
        cr_assert(sb_pairs_add(pairs, "abc", "cba"));
    sb_data *data = KEPT(sb_data_new(pairs, tiny.vocabulary, tiny.vocabulary,
                                     &(sb_data_options){.batch_pairs = 4, .seed = 5}));
    sb_pairs_free(pairs);
    MUST(data);
    const struct emulator_work before = device_work();
    cr_expect(isfinite(sb_evaluate_loss(tiny.model, data)), "%s", sb_error());
    const struct emulator_work work = work_since(&before);
    expect_work("an evaluation of two batches", &work,
                &(struct emulator_work){211, 0, 190, 2, 2372, 24});
}

static struct emulator_work work_of_decoding(const struct tiny *tiny,
                                             const sb_decoding_options *options)
{
    const char *text[] = {"abc"};
    sb_decoded output;
    const struct emulator_work before = device_work();
    decode(tiny, text, 1, options, &output);
    const struct emulator_work work = work_since(&before);
    cr_expect(!output.ended && output.length == options->longest, "%lld symbols",
              (long long)output.length);
    return work;
}

/* The difference of outputs of 40 and of 48 symbols: eight steps, with the caches' capacity as it
   is. */
static void expect_decoding(const char *what, sb_decoding_options options,
                            const struct emulator_work *most)
{
    struct tiny tiny = joined_model();
    tiny_draw(tiny.weights, 1, -100); /* no output ends */
    options.longest = 40;
    const struct emulator_work shorter = work_of_decoding(&tiny, &options);
    options.longest = 48;
    const struct emulator_work longer = work_of_decoding(&tiny, &options);
    const struct emulator_work steps = {
        longer.queued - shorter.queued,     longer.graphs - shorter.graphs,
        longer.kernels - shorter.kernels,   longer.waits - shorter.waits,
        longer.uploaded - shorter.uploaded, longer.downloaded - shorter.downloaded};
    expect_work(what, &steps, most);
}

/* One launch a symbol, and a wait for eight of them. */
WORK_TEST(of_eight_steps_of_greedy_decoding)
{
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    expect_decoding("eight greedy steps", (sb_decoding_options){0},
                    &(struct emulator_work){10, 8, 472, 1, 0, 136});
}

WORK_TEST(of_eight_steps_of_a_beam)
{
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    expect_decoding("eight steps of a beam of 3", (sb_decoding_options){.beam_width = 3},
                    &(struct emulator_work){10, 8, 464, 1, 0, 4104});
}
