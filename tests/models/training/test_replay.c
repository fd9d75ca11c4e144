/*
 * On a CUDA device a model trains as on the CPU, and a step that is launched as one graph has the
 * same bits as eager execution.
 */
#include "models/training/replay.h"
#include "nn/flat.h"
#include "tests/support/device.h"
#include "tests/support/tiny.h"

enum { STEPS = 20 };

/* Losses of training on the device in use: batches of two shapes, repeated. */
static void train(sb_graphs graphs, double dropout, int64_t accumulate, double *losses,
                  uint64_t *fingerprint)
{
    sb_seq2seq_options options = tiny_options();
    options.transformer.dropout = dropout;
    const sb_data_options data_options = {.batch_pairs = 3, .seed = 5};
    sb_data *data =
        sb_data_task_with(SB_TASK_COPY, &(sb_task_options){.max_length = 4}, &data_options);
    sb_parameters *weights = sb_parameters_new(3);
    sb_seq2seq *model = sb_seq2seq_new(weights, data, &options);
    const sb_trainer_options trainer_options = {
        .seed = 7, .accumulate = accumulate, .graphs = graphs};
    sb_trainer *trainer = sb_trainer_new(model, data, &trainer_options);
    cr_assert(trainer, "%s", sb_error());
    for (int i = 0; i < STEPS; i++) {
        sb_trained trained;
        cr_assert(sb_trainer_step(trainer, &trained), "%s", sb_error());
        losses[i] = trained.loss;
    }
    *fingerprint = sb_parameters_fingerprint(weights);
    sb_trainer_free(trainer);
    sb_seq2seq_free(model);
    sb_parameters_free(weights);
    sb_data_free(data);
}

/* Without dropout, which depends on positions, since batches on CUDA have more padding. */
TEST(replay, a_model_trains_on_cuda_as_on_the_cpu)
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
        cr_expect(fabs(cuda[i] - cpu[i]) <= 1e-5 * cpu[i], "step %d: the loss is %.9g, not %.9g", i,
                  cuda[i], cpu[i]);
}

static void expect_same_bits(int64_t accumulate)
{
    double graph[STEPS], eager[STEPS];
    uint64_t fingerprint_graph, fingerprint_eager;
    sb_use_device(device_cuda());
    train(SB_GRAPHS_AUTO, 0.1, accumulate, graph, &fingerprint_graph);
    train(SB_GRAPHS_OFF, 0.1, accumulate, eager, &fingerprint_eager);
    sb_use_device(NULL);
    cr_expect(memcmp(graph, eager, sizeof eager) == 0, "losses differ");
    cr_expect(fingerprint_graph == fingerprint_eager, "weights differ");
}

TEST(replay, a_graph_launch_has_the_same_bits_as_eager_execution)
{
    device_needed();
    expect_same_bits(1);
}

TEST(replay, a_graph_launch_that_accumulates_batches_has_the_same_bits)
{
    device_needed();
    expect_same_bits(3);
}

TEST(replay, a_shape_is_launched_as_a_graph_from_its_third_batch_on)
{
    device_needed();
    if (!device_cuda()->graphs)
        cr_skip_test("this build caches no memory, which graphs need");
    sb_use_device(device_cuda());
    struct tiny tiny = tiny_new(SB_F32, 1, &(sb_seq2seq_options){.transformer = {.width = 12}});
    const sb_model model = sb_seq2seq_as_model(tiny.model);
    struct replay *replay = replay_new(&model);
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
        sb_batch_free(batch);
    }
    cr_expect(replay_graphs(replay) == 1 && replay_launches(replay) == 3, "%lld graphs, %lld",
              (long long)replay_graphs(replay), (long long)replay_launches(replay));
    replay_free(replay);
    tiny_free(&tiny);
    sb_use_device(NULL);
}
