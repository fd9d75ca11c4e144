/* Steps as graphs, and the work that each step gives a device. */
#include "models/training/replay.h"
#include "nn/flat.h"
#include "ops/update.h"
#include "tests/support/tiny.h"

/*
 * On a CUDA device a model trains as on the CPU, and a step that is launched as one graph has the
 * same bits as eager execution.
 */

enum { STEPS = 12 }; /* a shape is launched as a graph from its third batch on */

/* Training on the device in use, with batches of two shapes, repeated: of each step the sum of
   loss, norm and rate. */
static void train_with(sb_graphs graphs, double dropout, sb_precision precision,
                       const sb_trainer_options *given, double *losses, uint64_t *fingerprint)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.dropout = dropout;
    options.transformer.precision = precision;
    const sb_data_options data_options = {.batch_pairs = 3, .seed = 5};
    sb_data *data =
        KEPT(sb_data_task_with(SB_TASK_COPY, &(sb_task_options){.max_length = 4}, &data_options));
    sb_parameters *weights = KEPT(sb_parameters_new(3));
    sb_seq2seq *model = KEPT(sb_seq2seq_new(weights, data, &options));
    sb_trainer_options trainer_options = *given;
    trainer_options.seed = 7;
    trainer_options.graphs = graphs;
    sb_trainer *trainer = KEPT(sb_trainer_new(model, data, &trainer_options));
    for (int i = 0; i < STEPS; i++) {
        sb_trained trained;
        MUST(sb_trainer_step(trainer, &trained));
        losses[i] = trained.loss + trained.norm + trained.rate;
    }
    *fingerprint = sb_parameters_fingerprint(weights);
}

static void train(sb_graphs graphs, double dropout, int64_t accumulate, double *losses,
                  uint64_t *fingerprint)
{
    train_with(graphs, dropout, SB_PRECISION_F32, &(sb_trainer_options){.accumulate = accumulate},
               losses, fingerprint);
}

/* Without dropout, which depends on positions, since batches on CUDA have more padding. */
TEST(replay, a_model_trains_on_cuda_as_on_the_cpu, KNOWN_KERNELS)
{
    device_needed();
    double cpu[STEPS], cuda[STEPS];
    uint64_t fingerprint;
    sb_use_device(NULL);
    train(SB_GRAPHS_AUTO, 0, 1, cpu, &fingerprint);
    sb_use_device(device_cuda());
    train(SB_GRAPHS_AUTO, 0, 1, cuda, &fingerprint);
    sb_use_device(NULL);
    for (int i = 0; i < STEPS; i++)
        cr_expect(fabs(cuda[i] - cpu[i]) <= 1e-5 * cpu[i],
                  "step %d: loss, norm and rate are %.9g, not %.9g", i, cuda[i], cpu[i]);
}

static void expect_same_bits(sb_precision precision, const sb_trainer_options *options)
{
    double graph[STEPS], eager[STEPS];
    uint64_t fingerprint_graph, fingerprint_eager;
    train_with(SB_GRAPHS_AUTO, 0.1, precision, options, graph, &fingerprint_graph);
    train_with(SB_GRAPHS_OFF, 0.1, precision, options, eager, &fingerprint_eager);
    cr_expect(memcmp(graph, eager, sizeof eager) == 0, "losses differ");
    cr_expect(fingerprint_graph == fingerprint_eager, "weights differ");
}

TEST(replay, a_graph_launch_has_the_same_bits_as_eager_execution, WHOLE_MODELS)
{
    device_needed();
    expect_same_bits(SB_PRECISION_F32, &(sb_trainer_options){.accumulate = 1});
    expect_same_bits(SB_PRECISION_TF32, &(sb_trainer_options){.accumulate = 1});
}

/* Adam's step is in the graph, with numbers that change from step to step. */
TEST(replay, a_graph_launch_clips_decays_and_follows_the_schedule_to_the_same_bits, WHOLE_MODELS)
{
    device_needed();
    const sb_schedule schedule = {
        .kind = SB_SCHEDULE_COSINE, .rate = 0.01, .warmup = 5, .steps = STEPS};
    expect_same_bits(SB_PRECISION_F32,
                     &(sb_trainer_options){
                         .optimiser_kind = SB_OPTIMISER_ADAMW,
                         .average_decay = 0.9,
                         .optimiser = {.clip = 0.05, .weight_decay = 0.1, .schedule = schedule}});
    expect_same_bits(SB_PRECISION_F32,
                     &(sb_trainer_options){.optimiser_kind = SB_OPTIMISER_SGD,
                                           .optimiser = {.momentum = 0.9, .clip = 0.5}});
}

/* The kernels of such a step, where a number is not finite. */
TEST(replay, a_step_in_a_graph_leaves_the_parameters_unless_loss_and_norm_are_finite)
{
    enum { N = 1000 };
    device_needed();
    const struct update_kernels *k = kernel_row_if_any(&update_rows, device_cuda(), SB_F32);
    const struct adam_step step = {.rate = 0.1,
                                   .beta1 = 0.9,
                                   .beta2 = 0.98,
                                   .epsilon = 1e-9,
                                   .correction1 = 0.1,
                                   .correction2 = 0.02};
    char numbers[ADAM_NUMBERS] = {0};
    k->adam_numbers(&step, numbers);
    sb_tensor *on_device = sb_tensor_zeros(SB_F64, SB_SHAPE(ADAM_NUMBERS / 8));
    cr_assert(device_cuda()->upload(on_device->data, numbers, sizeof numbers));
    for (int wrong = 0; wrong < 3; wrong++) { /* nothing, the loss, the gradient */
        sb_tensor *g = sb_tensor_full(SB_F32, SB_SHAPE(N), 2),
                  *w = sb_tensor_zeros(SB_F32, SB_SHAPE(N));
        sb_tensor *m = sb_tensor_zeros(SB_F32, SB_SHAPE(N)),
                  *v = sb_tensor_zeros(SB_F32, SB_SHAPE(N));
        sb_tensor *loss = sb_tensor_full(SB_F32, SB_SCALAR, wrong == 1 ? INFINITY : 3);
        sb_tensor *outcome = sb_tensor_zeros(SB_F64, SB_SHAPE(UPDATE_OUTCOME));
        if (wrong == 2)
            sb_tensor_set(g, N - 1, NAN);
        cr_expect(
            k->judge(N, g->data, loss->data, 1, outcome->data) &&
            k->adam_judged(N, on_device->data, outcome->data, g->data, w->data, m->data, v->data));
        const double norm = sqrt(4.0 * N);
        cr_expect(sb_tensor_get(outcome, 0) == (wrong == 1 ? INFINITY : 3));
        cr_expect(wrong == 2 ? isnan(sb_tensor_get(outcome, 1))
                             : sb_tensor_get(outcome, 1) == norm);
        cr_expect(wrong ? isnan(sb_tensor_get(outcome, 2))
                        : sb_tensor_get(outcome, 2) == 1 / (norm + 1e-6));
        cr_expect((sb_tensor_get(w, 5) == 0) == (wrong > 0) &&
                      (sb_tensor_get(m, N - 2) == 0) == (wrong > 0) &&
                      (sb_tensor_get(v, 0) == 0) == (wrong > 0),
                  "%d: w is %g", wrong, sb_tensor_get(w, 5));
        sb_tensor *all[] = {g, w, m, v, loss, outcome};
        release_all(6, all);
    }
    sb_tensor_release(on_device);
}

TEST(replay, a_graph_launch_that_accumulates_batches_has_the_same_bits, WHOLE_MODELS)
{
    device_needed();
    expect_same_bits(SB_PRECISION_F32, &(sb_trainer_options){.accumulate = 3});
}

TEST(replay, a_shape_is_launched_as_a_graph_from_its_third_batch_on, device_needed())
{
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    struct tiny tiny = tiny_new(SB_F32, 1, &(sb_seq2seq_options){.transformer = {.width = 12}});
    const sb_model model = sb_seq2seq_as_model(tiny.model);
    struct replay *replay = replay_new(&model, NULL);
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    cr_assert(parameters_flatten(tiny.weights));
    double value;
    const sb_partition part = {.items = {.of = 4, .first = 1}}; /* dropout at other positions */
    for (int i = 0; i < 5; i++) {
        sb_batch *batch = tiny_batch(tiny.vocabulary, (uint64_t)i, 2, 4);
        const bool again = i > 0 && i < 4;
        batch->partition = i == 4 ? &part : NULL;
        cr_expect(replay_run(replay, batch, true, &random, &value) == again, "batch %d", i);
        sb_parameters_clear(tiny.weights);
    }
    cr_expect(replay_graphs(replay) == 1 && replay_launches(replay) == 3, "%lld graphs, %lld",
              (long long)replay_graphs(replay), (long long)replay_launches(replay));
    replay_free(replay);
}

/*
 * What a training step, an evaluation and a decoding step ask of a CUDA device: operations that the
 * host queues, kernels, waits of the host and bytes. A result that is right can still cost twice as
 * many launches; so the counts are asserted, for one small model, and only the emulator counts.
 *
 * A count that falls is lowered here with the change that lowers it.
 */

/* The device does not fill new memory with NaN here, which is work too, and cublasLt refuses
   nothing. */
static void work_begin(void)
{
    setenv("SOFTBACK_EMULATOR_ORDER", "forward", 1);
    test_begin();
    too_slow(RACES, "it counts what other tests run too");
    device_needed();
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
