/* Nodes of operations, and recomputation. */
#include "tests/support/sample.h"

/* y = a + b, which can write into a fresh gradient */
static int was_fresh[2];
static bool plus_backward(sb_node *node)
{
    for (int i = 0; i < 2; i++) {
        sb_tensor *dx = sb_node_dx(node, i);
        was_fresh[i] = sb_node_fresh(node, i);
        for (int64_t k = 0; k < sb_tensor_size(dx); k++)
            sb_tensor_set(dx, k,
                          (was_fresh[i] ? 0 : sb_tensor_get(dx, k)) +
                              sb_tensor_get(sb_node_dy(node, 0), k));
    }
    return true;
}

static const sb_operation plus_operation = {"plus", "a b", plus_backward, true, false};

static sb_tensor *plus(sb_tensor *a, sb_tensor *b)
{
    sb_node *node = sb_node_new(&plus_operation, 2, (sb_tensor *[]){a, b}, 1, NULL, 0);
    sb_tensor *y = node ? sb_node_output(node, a->dtype, a->rank, a->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        sb_tensor_set(y, i, sb_tensor_get(a, i) + sb_tensor_get(b, i));
    return y;
}

/* y, z = 2x, 3x */
static bool saw_no_dz;
static bool fork_backward(sb_node *node)
{
    sb_tensor *dx = sb_node_dx(node, 0);
    saw_no_dz = sb_node_dy(node, 1) == NULL;
    for (int output = 0; output < 2; output++)
        for (int64_t i = 0; sb_node_dy(node, output) && i < sb_tensor_size(dx); i++)
            sb_tensor_set(dx, i,
                          sb_tensor_get(dx, i) +
                              (2 + output) * sb_tensor_get(sb_node_dy(node, output), i));
    return true;
}

static const sb_operation fork_operation = {"fork", "x", fork_backward, false, false};

static sb_node *two_outputs(sb_tensor *x, sb_tensor *y[2])
{
    sb_node *node = sb_node_new(&fork_operation, 1, &x, 2, NULL, 0);
    for (int output = 0; output < 2; output++) {
        y[output] = sb_node_output(node, x->dtype, x->rank, x->dim);
        for (int64_t i = 0; i < sb_tensor_size(y[output]); i++)
            sb_tensor_set(y[output], i, (2 + output) * sb_tensor_get(x, i));
    }
    return node;
}

TEST(node, it_may_have_several_outputs)
{
    for (int used = 1; used <= 2; used++) {
        sb_tensor *a = KEPT(leaf(3)), *y[2];
        TAPE(SB_RECORD);
        two_outputs(a, y);
        cr_assert(sb_backward(used == 2 ? total(times(y[0], y[1])) : total(y[0])));
        cr_expect(saw_no_dz == (used == 1), "an output that nothing used has no gradient");
        cr_expect(every(sb_tensor_grad(a), used == 2 ? 2 * 9 + 3 * 6 : 2));
    }
}

TEST(node, a_third_output_is_refused)
{
    sb_tensor *a = KEPT(leaf(3)), *y[2];
    REFUSED_ON_TAPE(SB_RECORD, "fork: it has 2 outputs already",
                    sb_node_output(two_outputs(a, y), SB_F64, SB_SHAPE(2)));
    REFUSED("node_output: node is NULL", sb_node_output(NULL, SB_F64, SB_SHAPE(2)));
}

TEST(node, a_gradient_is_fresh_until_something_is_added_to_it)
{
    sb_tensor *a = KEPT(leaf(3)), *b = KEPT(leaf(5));
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, b))));
    sb_tape_end(&tape);
    cr_expect(was_fresh[0] && was_fresh[1]);
    sb_tensor_clear_grad(b);
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, b)))); /* a has a gradient already */
    sb_tape_end(&tape);
    cr_expect(!was_fresh[0] && was_fresh[1]);
    cr_expect(every(sb_tensor_grad(a), 2) && every(sb_tensor_grad(b), 1));
    sb_tensor_clear_grad(a);
    sb_tape_begin(&tape, SB_RECORD);
    cr_assert(sb_backward(total(plus(a, a)))); /* in two places: the second adds */
    sb_tape_end(&tape);
    cr_expect(!was_fresh[0] && !was_fresh[1] && every(sb_tensor_grad(a), 2));
    sb_tensor_clear_grad(a);
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = plus(a, b);
    cr_assert(sb_backward(total(times(y, y)))); /* an operation that adds gets zeros to add to */
    sb_tape_end(&tape);
    cr_expect(was_fresh[0] && every(sb_tensor_grad(a), 16));
}

static sb_tape *visited_tape;

static bool end_backward(sb_node *node)
{
    (void)node;
    REFUSED("tape_end: backward still runs on this tape", sb_tape_end(visited_tape));
    return true;
}

TEST(node, its_backward_cannot_end_the_tape)
{
    static const sb_operation ends = {"ends", "x", end_backward, false, false};
    sb_tensor *a = KEPT(leaf(3));
    FAILED_TAPE(SB_RECORD);
    visited_tape = &tape;
    sb_tensor *y = sb_node_output(sb_node_new(&ends, 1, &a, 1, NULL, 0), SB_F64, SB_SHAPE(2));
    REFUSED("backward still runs", sb_backward(total(plus(y, y))));
}

TEST(node, an_operation_without_backward_gives_constants)
{
    static const sb_operation cut = {"cut", "x", NULL, false, false};
    static const sb_operation ids = {"ids", "x", plus_backward, false, false};
    sb_tensor *a = leaf(3);
    FAILED_TAPE(SB_RECORD);
    sb_tensor *y = sb_node_output(sb_node_new(&cut, 1, &a, 1, NULL, 0), SB_F64, SB_SHAPE(2));
    cr_expect(y && !y->requires_grad);
    sb_tensor *i = sb_node_output(sb_node_new(&ids, 1, &a, 1, NULL, 0), SB_I32, SB_SHAPE(2));
    cr_expect(i && !i->requires_grad, "integers carry no gradient");
    REFUSED("backward: the argument, of shape (), depends on nothing that requires a gradient",
            sb_backward(total(y)));
    sb_tensor_release(a);
}

TEST(node, a_view_keeps_its_data_alive)
{
    sb_tensor *a = KEPT(leaf(3));
    TAPE(SB_RECORD);
    sb_tensor *y = times(a, a);
    static const sb_operation part = {"part", "x", NULL, false, false};
    sb_node *node = sb_node_new(&part, 1, &y, 1, NULL, 0);
    sb_tensor *view = sb_keep(node_view(node, 1, 1, (int64_t[]){1}));
    cr_expect(view && (double *)view->data == (double *)y->data + 1);
    sb_tensor *alone = KEPT(sb_tensor_retain(view));
    cr_assert(sb_backward(total(times(y, a))));
    cr_expect(y->data_gone && sb_tensor_get(view, 0) == 9);
    cr_expect(sb_tensor_get(alone, 0) == 9);
}

static int released;
static void count_release(void *object)
{
    released += *(int *)object;
}

TEST(node, the_tape_releases_objects_that_it_owns)
{
    int object = 10;
    released = 0;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    cr_expect(tape_own_object(&object, count_release, "test") == &object && released == 0);
    sb_tensor *t = sb_tape_own(sb_tensor_scalar(SB_F64, 4));
    cr_expect(sb_tensor_value(t) == 4);
    cr_expect(sb_tape_end(&tape) && released == 10);
    sb_tape_begin(&tape, SB_RECORD);
    sb_fail("it broke");
    cr_expect(!tape_own_object(&object, count_release, "test") && released == 20, "not released");
    sb_tape_end(&tape);
    REFUSED("tape_own: t is NULL", sb_tape_own(NULL));
}

TEST(node, a_leaf_that_the_tape_owns_gets_its_gradient)
{
    TAPE(SB_RECORD);
    sb_tensor *a = sb_tape_own(leaf(3));
    cr_assert(sb_backward(total(times(a, a))));
    cr_expect(every(a, 3) && every(sb_tensor_grad(a), 6));
}

TEST(node, inputs_are_checked_and_named)
{
    sb_tensor *a = KEPT(leaf(3)), *single = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(2)));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(2)));
    REFUSED_ON_TAPE(SB_RECORD, "times: a is NULL", times(NULL, a));
    REFUSED_ON_TAPE(SB_RECORD, "times: a is f64, b is f32: dtypes differ", times(a, single));
    FAILED_TAPE(SB_RECORD);
    cr_expect(times(a, ids) != NULL, "integers go with any real dtype: %s", sb_error());
    cr_expect(!sb_node_new(&plus_operation, 3, (sb_tensor *[]){ids, a, single}, 1, NULL, 0));
    EXPECT_ERROR("plus: b is f64, b is f32"); /* further inputs take the last name */
}

TEST(node, saved_tensors_and_options_can_be_read_back)
{
    sb_tensor *a = KEPT(leaf(3)), *saved = sb_tensor_scalar(SB_F64, 8);
    FAILED_TAPE(SB_RECORD);
    sb_node *node = sb_node_new(&plus_operation, 2, (sb_tensor *[]){a, a}, 1, "seven", 6);
    sb_tensor *y = sb_node_output(node, SB_F64, SB_SHAPE(2));
    cr_expect(sb_node_save(node, saved) == saved);
    cr_expect(sb_node_input(node, 1) == a && !sb_node_input(node, 2) && !sb_node_input(node, -1));
    cr_expect(sb_node_result(node, 0) == y && !sb_node_result(node, 1));
    cr_expect(sb_node_saved(node, 0) == saved && !sb_node_saved(node, 1));
    cr_expect(strcmp(sb_node_options(node), "seven") == 0);
    for (int i = 1; i < 4; i++)
        cr_expect(sb_node_save(node, sb_tensor_scalar(SB_F64, i)) != NULL);
    cr_expect(!sb_node_save(node, sb_tensor_scalar(SB_F64, 4)), "the fifth is released");
    EXPECT_ERROR("plus: it saves more than 4 tensors");
}

TEST(node, options_are_aligned_for_any_type)
{
    sb_tensor *a = KEPT(leaf(3)), *in[] = {a, a, a, a};
    TAPE(SB_RECORD);
    for (int inputs = 0; inputs <= 4; inputs++) {
        sb_node *node = sb_node_new(&plus_operation, inputs, in, 1, "seven", 6);
        cr_expect((uintptr_t)sb_node_options(node) % 16 == 0, "not with %d inputs", inputs);
    }
}

/* ---- recomputation ---- */

enum { ROWS = 3, WIDTH = 8, LAYERS = 4 };

struct layer {
    sb_tensor *weight, *gain; /* parameters, which f knows from its context */
    double dropout;
    int depth; /* of nested checkpoints */
};

/* x + dropout(tanh(x W')) * gain, with x in two places. */
static sb_tensor *run_layer(void *context, sb_tensor *const x[])
{
    const struct layer *layer = context;
    if (layer->depth > 0) {
        struct layer inner = *layer;
        inner.depth--;
        return sb_recompute(run_layer, &inner, sizeof inner, 1, x);
    }
    sb_tensor *h = sb_tanh(sb_linear(x[0], layer->weight, NULL));
    return sb_add(x[0], sb_multiply(sb_dropout(h, layer->dropout), layer->gain));
}

struct network {
    sb_tensor *x, *first;
    struct layer layer[LAYERS];
};

static struct network network_new(void)
{
    struct network n = {.x = test_leaf(SB_F32, 1, SB_SHAPE(ROWS, WIDTH)),
                        .first = test_leaf(SB_F32, 2, SB_SHAPE(WIDTH, WIDTH))};
    for (int i = 0; i < LAYERS; i++)
        n.layer[i] = (struct layer){test_leaf(SB_F32, 10 + (uint64_t)i, SB_SHAPE(WIDTH, WIDTH)),
                                    test_leaf(SB_F32, 20 + (uint64_t)i, SB_SHAPE(WIDTH)), 0.3, 0};
    return n;
}

/* The hash of all gradients; `depth` checkpoints around each layer. The input of the layers is used
   after them too, so that its gradient is not zero when they add to it. */
static uint64_t gradient_bits(struct network *n, int depth)
{
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *before = sb_linear(n->x, n->first, NULL), *x = before;
    for (int i = 0; i < LAYERS; i++) {
        struct layer layer = n->layer[i];
        layer.depth = depth;
        x = run_layer(&layer, &x);
    }
    sb_tensor *y = sb_dropout(sb_multiply(x, sb_exp(before)), 0.1);
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    cr_assert(sb_tape_end(&tape));
    uint64_t hash = random.position;
    sb_tensor *leaf[2 + 2 * LAYERS] = {n->x, n->first};
    for (int i = 0; i < LAYERS; i++) {
        leaf[2 + 2 * i] = n->layer[i].weight;
        leaf[3 + 2 * i] = n->layer[i].gain;
    }
    for (int i = 0; i < 2 + 2 * LAYERS; i++) {
        cr_assert(sb_tensor_grad(leaf[i]), "leaf %d has no gradient", i);
        const unsigned char *bytes = test_data(sb_tensor_grad(leaf[i]));
        for (int64_t b = 0; b < sb_tensor_size(leaf[i]) * 4; b++)
            hash = (hash ^ bytes[b]) * 0x100000001B3u;
        sb_tensor_clear_grad(leaf[i]);
    }
    return hash;
}

TEST(recomputation, gradients_have_the_same_bits_as_without_recomputation)
{
    struct network n = network_new();
    uint64_t plain = gradient_bits(&n, 0);
    cr_expect(gradient_bits(&n, 1) == plain);
    cr_expect(gradient_bits(&n, 2) == plain, "nested checkpoints give different bits");
    n.layer[1].dropout = 0.2;
    cr_expect(gradient_bits(&n, 1) != plain);
}

/* As a layer in mixed precision: x in bf16, and its weight in f32. */
static sb_tensor *run_narrow(void *context, sb_tensor *const x[])
{
    const struct layer *layer = context;
    return sb_tanh(sb_linear(x[0], sb_cast(layer->weight, SB_BF16), NULL));
}

FUNCTION(run_product, sb_linear(x[0], x[1], NULL))

/* So large that its kernel is another one where nothing will be computed again. */
TEST(recomputation, a_product_has_the_same_bits_as_without_recomputation)
{
    const int64_t n = test_slow() ? 96 : 768;
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(n, n)),
              *weight = test_leaf(SB_F64, 2, SB_SHAPE(n, n));
    TAPE(SB_RECORD);
    sb_tensor *plain = sb_linear(x, weight, NULL);
    sb_tensor *again = sb_recompute(run_product, NULL, 0, 2, (sb_tensor *[]){x, weight});
    int64_t others = 0;
    for (int64_t i = 0; i < n * n; i++)
        others += sb_tensor_get(plain, i) != sb_tensor_get(again, i);
    cr_expect(others == 0, "%lld numbers differ", (long long)others);
}

TEST(recomputation, inputs_of_different_dtypes_get_the_same_gradients)
{
    struct network n = network_new();
    sb_tensor *leaf[] = {n.x, n.layer[0].weight}, *grad[2][2];
    for (int again = 0; again < 2; again++) {
        TAPE(SB_RECORD);
        sb_tensor *x = sb_cast(n.x, SB_BF16);
        sb_tensor *y = again ? sb_recompute(run_narrow, &n.layer[0], sizeof n.layer[0], 1, &x)
                             : run_narrow(&n.layer[0], &x);
        MUST(sb_backward(sb_sum(sb_cast(y, SB_F32), SB_ALL, false)));
        for (int i = 0; i < 2; i++)
            grad[again][i] = take_grad(leaf[i]);
    }
    for (int i = 0; i < 2; i++)
        cr_expect(grad[0][i]->dtype == SB_F32 && test_same_bits(grad[0][i], grad[1][i]));
}

static int64_t peak_bytes(struct network *n, int depth)
{
    int64_t before = memory_in_use().live_bytes;
    sb_device_reset_peak(sb_device_in_use());
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, NULL);
    sb_tensor *x = n->x;
    for (int i = 0; i < 10 * LAYERS; i++) {
        struct layer layer = n->layer[i % LAYERS];
        layer.depth = depth;
        x = run_layer(&layer, &x);
    }
    MUST(sb_backward(sb_sum(x, SB_ALL, false)));
    cr_assert(sb_tape_end(&tape));
    for (int i = 0; i < LAYERS; i++) {
        sb_tensor_clear_grad(n->layer[i].weight);
        sb_tensor_clear_grad(n->layer[i].gain);
    }
    sb_tensor_clear_grad(n->x);
    return memory_in_use().peak_bytes - before;
}

/* 40 layers of 3 results each; rows are so large that the size of handles is negligible. */
TEST(recomputation, dropout_without_a_random_stream_fails_before_backward)
{
    struct network n = network_new();
    n.layer[0].depth = 1;
    FAILED_TAPE(SB_RECORD);
    REFUSED("the tape records and has no random stream", run_layer(&n.layer[0], &n.x));
}

TEST(recomputation, memory_holds_the_boundaries_and_one_layer, WHOLE_MODELS)
{
    enum { LONG = 4096 };
    struct network n = network_new();
    n.x = test_leaf(SB_F32, 1, SB_SHAPE(LONG, WIDTH));
    int64_t row = LONG * WIDTH * 4, plain = peak_bytes(&n, 0), held = peak_bytes(&n, 1);
    cr_expect(plain > 110 * row, "%lld", (long long)(plain / row));
    cr_expect(held < 50 * row, "%lld", (long long)(held / row));
}

static sb_tensor *checkpointed(void *context, sb_tensor *const x[])
{
    const struct layer layer = {x[1], x[2], 0.4, 0};
    (void)context;
    return sb_recompute(run_layer, &layer, sizeof layer, 1, x);
}

TEST(recomputation, the_gradient_check_passes, KNOWN_KERNELS)
{
    sb_tensor *x[] = {test_leaf(SB_F64, 1, SB_SHAPE(2, 3)), test_leaf(SB_F64, 2, SB_SHAPE(3, 3)),
                      test_leaf(SB_F64, 3, SB_SHAPE(3))};
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_gradcheck_options options = {.random = &random};
    cr_expect(sb_gradcheck(checkpointed, NULL, x, 3, &options, NULL), "%s", sb_error());
}

FUNCTION(second_only, sb_exp(x[1]))

TEST(recomputation, an_input_that_is_not_used_has_gradient_zero)
{
    sb_tensor *leaf[] = {test_leaf(SB_F32, 1, SB_SHAPE(2)), test_leaf(SB_F32, 2, SB_SHAPE(2))};
    TAPE(SB_RECORD);
    sb_tensor *x[] = {sb_keep(sb_tanh(leaf[0])), sb_tanh(leaf[1])};
    sb_tensor *y = sb_recompute(second_only, NULL, 0, 2, x);
    MUST(sb_backward(sb_sum(y, SB_ALL, false)));
    cr_expect(sb_tensor_get(sb_tensor_grad(x[0]), 0) == 0 &&
              sb_tensor_get(sb_tensor_grad(leaf[0]), 1) == 0);
    cr_expect(sb_tensor_get(sb_tensor_grad(leaf[1]), 0) != 0);
}

FUNCTION(reads_outside, sb_add(x[0], *(sb_tensor **)context))
FUNCTION(returns_input, x[0])
FUNCTION(fails, sb_add(x[0], NULL))

TEST(recomputation, invalid_functions_are_reported)
{
    static const char *const messages[] = {
        "its function reads a tanh output (2) of the outer tape, which is not among its inputs",
        "recompute: its function returned input 0 as its result",
        "add: b is NULL",
        "recompute: f is NULL",
        "recompute: n is 0; it needs at least 1 input",
        "recompute: an input is NULL",
    };
    sb_tensor *leaf = test_leaf(SB_F32, 1, SB_SHAPE(2));
    for (int i = 0; i < 6; i++) {
        FAILED_TAPE(SB_RECORD);
        sb_tensor *outside = sb_tanh(leaf), *x[] = {i == 5 ? NULL : sb_exp(leaf)};
        sb_function f = i == 0   ? reads_outside
                        : i == 1 ? returns_input
                        : i == 2 ? fails
                        : i == 3 ? NULL
                                 : second_only;
        REFUSED(messages[i], sb_recompute(f, &outside, sizeof outside, i == 4 ? 0 : 1, x));
    }
}

TEST(recomputation, without_recording_it_only_calls_the_function)
{
    sb_tensor *leaf = test_leaf(SB_F32, 1, SB_SHAPE(2)), *x[] = {NULL, leaf};
    x[0] = leaf;
    TAPE(SB_NO_RECORD);
    sb_tensor *y = sb_recompute(second_only, NULL, 0, 2, x);
    cr_expect(sb_tensor_get(y, 1) == sb_tensor_get(sb_exp(leaf), 1));
}

static bool small_run(void *network)
{
    struct network *n = network;
    sb_random random = sb_random_new(7, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *x = sb_tanh(n->x);
    for (int i = 0; i < 2; i++)
        x = sb_recompute(run_layer, &n->layer[i], sizeof n->layer[i], 1, &x);
    sb_backward(sb_sum(x, SB_ALL, false));
    bool ok = sb_tape_end(&tape);
    sb_tensor *all[] = {n->x, n->layer[0].weight, n->layer[0].gain, n->layer[1].weight,
                        n->layer[1].gain};
    for (int i = 0; i < 5; i++) {
        cr_expect(ok || !sb_tensor_grad(all[i]), "a failure leaves a partial gradient");
        sb_tensor_clear_grad(all[i]);
    }
    return ok;
}

TEST(recomputation, each_allocation_may_fail)
{
    struct network n = network_new();
    test_each_allocation_fails(small_run, &n);
}
