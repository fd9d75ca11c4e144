/* teach/micro.c computes what the library does. */
#include "tests/support/test.h"

#define main micro_main
#include "teach/micro.c"
#undef main
#undef at
#undef d

/* The library's names of micro.c's weights, in the order in which it makes them. */
static const char *const names[] = {
    "encoder.embedding.weight",
    "encoder.embedding.positions",
    "encoder.layers.0.self_norm.weight",
    "encoder.layers.0.self_attention.query.weight",
    "encoder.layers.0.self_attention.key.weight",
    "encoder.layers.0.self_attention.value.weight",
    "encoder.layers.0.self_attention.output.weight",
    "encoder.layers.0.feed_norm.weight",
    "encoder.layers.0.feed_forward.up.weight",
    "encoder.layers.0.feed_forward.down.weight",
    "encoder.norm.weight",
    "decoder.embedding.weight",
    "decoder.embedding.positions",
    "decoder.layers.0.self_norm.weight",
    "decoder.layers.0.self_attention.query.weight",
    "decoder.layers.0.self_attention.key.weight",
    "decoder.layers.0.self_attention.value.weight",
    "decoder.layers.0.self_attention.output.weight",
    "decoder.layers.0.cross_norm.weight",
    "decoder.layers.0.cross_attention.query.weight",
    "decoder.layers.0.cross_attention.key.weight",
    "decoder.layers.0.cross_attention.value.weight",
    "decoder.layers.0.cross_attention.output.weight",
    "decoder.layers.0.feed_norm.weight",
    "decoder.layers.0.feed_forward.up.weight",
    "decoder.layers.0.feed_forward.down.weight",
    "decoder.norm.weight",
    "scores.weight",
};
enum { NAMES = sizeof names / sizeof *names };

/* The same model of the library. */
struct twin {
    sb_parameters *set;
    sb_encoder *encoder;
    sb_decoder *decoder;
    sb_output_head head;
    sb_optimiser *adam;
};

/* Number i of micro.c's weight w, whose matrices are (in, out), in the library's, (out, in). */
static int64_t place_of(int w, int i)
{
    const int rows = tape[w].rows, cols = tape[w].cols;
    return strstr(names[w], "embedding") ? i : (int64_t)(i % cols) * rows + i / cols;
}

static struct twin twin_new(sb_dtype dtype, double rate)
{
    const sb_transformer_options options = {.width = WIDTH,
                                            .heads = HEADS,
                                            .feed_forward = HIDDEN,
                                            .encoder_layers = 1,
                                            .decoder_layers = 1,
                                            .biases = SB_BIASES_NONE,
                                            .positions = SB_POSITIONS_LEARNED,
                                            .positions_longest = LENGTH,
                                            .embedding_scale = 1,
                                            .position_scale = 1};
    const sb_optimiser_options adam_options = {.learning_rate = rate};
    struct twin t = {.set = KEPT(sb_parameters_of(dtype, 1))};
    t.encoder = KEPT(sb_encoder_new(t.set, "encoder", SYMBOLS, &options));
    t.decoder = KEPT(sb_decoder_new(t.set, "decoder", SYMBOLS, &options, true, NULL));
    MUST(sb_output_head_init(&t.head, t.set, "scores", WIDTH, SYMBOLS, false, NULL));
    t.adam = KEPT(sb_adam_new(t.set, &adam_options));
    cr_assert(sb_parameters_count(t.set) == NAMES && weights.tensors == NAMES);
    for (int w = 0; w < NAMES; w++) {
        sb_tensor *to = sb_parameters_find(t.set, names[w]);
        cr_assert(to && sb_tensor_size(to) == tape[w].rows * tape[w].cols, "%s", names[w]);
        for (int i = 0; i < sb_tensor_size(to); i++)
            sb_tensor_set(to, place_of(w, i), tape[w].x[i]);
    }
    return t;
}

static sb_tensor *ids_of(const int *symbols)
{
    return sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(BATCH, LENGTH), symbols));
}

/* The loss of micro.c's batch, and its gradients, which a step may follow. */
static double twin_loss(const struct twin *t)
{
    int lengths[BATCH];
    for (int i = 0; i < BATCH; i++)
        lengths[i] = LENGTH;
    sb_tape recording;
    sb_tape_begin(&recording, SB_RECORD);
    sb_tensor *length = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(BATCH), lengths));
    sb_tensor *memory = sb_encoder_forward(t->encoder, ids_of(source), length, NULL);
    sb_tensor *y = sb_decoder_forward(t->decoder, ids_of(written), memory, length, NULL);
    sb_tensor *loss = sb_cross_entropy(sb_output_head_logits(&t->head, y), ids_of(target), NULL);
    MUST(sb_backward(loss));
    const double value = sb_tensor_value(loss);
    cr_assert(sb_tape_end(&recording));
    return value;
}

/* The largest difference of gradients, relative to the largest of the same weight. */
static double difference_of_gradients(const struct twin *t)
{
    double most = 0;
    for (int w = 0; w < NAMES; w++) {
        const sb_tensor *gradient = sb_tensor_grad(sb_parameters_find(t->set, names[w]));
        double largest = 0, difference = 0;
        for (int i = 0; i < sb_tensor_size(gradient); i++) {
            largest = fmax(largest, fabs(tape[w].dx[i]));
            difference =
                fmax(difference, fabs(sb_tensor_get(gradient, place_of(w, i)) - tape[w].dx[i]));
        }
        most = fmax(most, difference / largest);
    }
    return most;
}

/* micro.c computes in f64; the library in f32 differs by rounding. */
CPU_TEST(micro, losses_and_gradients_are_those_of_the_library)
{
    too_slow(SANITIZED, "it trains whole models, whose operations have tests of their own");
    const double rate = 0.003;
    draw_batch();
    loss_of_batch(); /* makes the weights */
    struct twin exact = twin_new(SB_F64, rate), single = twin_new(SB_F32, rate);
    for (int step = 1; step <= (test_slow() ? 10 : 100); step++) {
        tensor *loss = loss_of_batch();
        backpropagate(loss);
        cr_assert(fabs(twin_loss(&exact) - loss->x[0]) < 1e-9, "at step %d", step);
        cr_assert(fabs(twin_loss(&single) - loss->x[0]) < 1e-5, "at step %d", step);
        cr_assert(difference_of_gradients(&exact) < 1e-9, "at step %d", step);
        cr_assert(step > 1 || difference_of_gradients(&single) < 1e-5);
        adam(step, rate);
        cr_assert(sb_optimiser_step(exact.adam) && sb_optimiser_step(single.adam));
        draw_batch();
    }
}
