/*
 * On a CUDA device a model trains as on the CPU, and a step that is launched as one graph has the
 * same bits as eager execution.
 */
#include "models/training/replay.h"
#include "nn/flat.h"
#include "ops/update.h"
#include "tests/support/device.h"
#include "tests/support/tiny.h"

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
TEST(replay, a_model_trains_on_cuda_as_on_the_cpu)
{
    too_slow(RACES, "its kernels run in shorter tests too");
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
    sb_use_device(device_cuda());
    train_with(SB_GRAPHS_AUTO, 0.1, precision, options, graph, &fingerprint_graph);
    train_with(SB_GRAPHS_OFF, 0.1, precision, options, eager, &fingerprint_eager);
    sb_use_device(NULL);
    cr_expect(memcmp(graph, eager, sizeof eager) == 0, "losses differ");
    cr_expect(fingerprint_graph == fingerprint_eager, "weights differ");
}

TEST(replay, a_graph_launch_has_the_same_bits_as_eager_execution)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    device_needed();
    expect_same_bits(SB_PRECISION_F32, &(sb_trainer_options){.accumulate = 1});
    expect_same_bits(SB_PRECISION_TF32, &(sb_trainer_options){.accumulate = 1});
}

/* Adam's step is in the graph, with numbers that change from step to step. */
TEST(replay, a_graph_launch_clips_decays_and_follows_the_schedule_to_the_same_bits)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
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
    sb_use_device(device_cuda());
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
    sb_use_device(NULL);
}

TEST(replay, a_graph_launch_that_accumulates_batches_has_the_same_bits)
{
    too_slow(EMULATED_SANITIZED, "it runs whole models, whose operations have tests of their own");
    device_needed();
    expect_same_bits(SB_PRECISION_F32, &(sb_trainer_options){.accumulate = 3});
}

TEST(replay, a_shape_is_launched_as_a_graph_from_its_third_batch_on)
{
    device_needed();
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    sb_use_device(device_cuda());
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
    sb_use_device(NULL);
}
