/*
 * Every operation gives the same on a CUDA device as on the CPU, forward and backward, on every
 * example that it lists. The device is that of SOFTBACK_CUDA, or else the emulated one; without
 * either the tests are skipped.
 */
#include "autograd/node.h"
#include "tests/support/examples.h"
#include <float.h>
#include <pthread.h>

/* The same values on another device. */
static struct inputs inputs_on(const sb_device *device, const struct inputs *from)
{
    struct inputs in = {.n = from->n};
    for (int i = 0; i < in.n; i++)
        in.x[i] = KEPT(sb_tensor_to(from->x[i], device));
    return in;
}

static struct results results_on(const sb_device *device, const struct example *e,
                                 const char *shapes, const struct inputs *from)
{
    struct inputs in = inputs_on(device, from);
    sb_use_device(device);
    struct results r = example_must_run(e, shapes, &in);
    sb_use_device(NULL);
    return r;
}

/*
 * Limits, relative to the largest element: of f32 and f64 in ulp, of bf16 in roundings (2^-8).
 *
 * f32. A device differs from the CPU, rightly, in three ways: functions (expf and logf 1 ulp, tanhf
 * and erff 2: CUDA C++ Programming Guide), products contracted into sums, and the order of sums. A
 * result has at most one function (2), whose argument is rounded (inputs are below 2, so that 1/2
 * ulp of it counts at most once), and two operations on its value (1 each, in sums of any
 * order): 4. What follows adds to that.
 *
 * f64. The same in ulp of f64; the CPU, with which it is compared, errs as much: twice the limit.
 * The CPU sums a row of n numbers in at least two lanes, which errs by sqrt(n / 2) / 2 ulp (a
 * random walk of errors of 1/2 ulp at most). The sum
 * of all 3 x 1,030 elements is -3.8, its partial sums reach 38: 40 ulp (AVX2).
 *
 * bf16. Sums and functions are computed in f32, whose errors are 2^-15 of a rounding. The result is
 * rounded once, and so is one tensor that forward saves or passes on for backward (y of exp, z of
 * an activation, dz of linear): 2. Other tensors between kernels add one each.
 *
 * The last columns are the worst of all examples (f32, f64, bf16), on the emulator with a device's
 * rounding and contraction (tests/cuda.sh, "fma"), seeds 1 and 2.
 */
static const struct limit {
    const char *operation;
    double ulps, roundings;
} limits[] = {
    /* a product before, the quotient and a product after exp; weights and dscores */
    {"attention", 8, 4}, /*           6.0   9.4  2.1 */
    /* a second function, log, and a difference of its result */
    {"log_softmax", 6, 2},   /*       4.2  12.0  4.7 (see below) */
    {"cross_entropy", 6, 2}, /*       1.8   3.0  0.7 */
    {"logsumexp", 6, 2},     /*       1.7   2.2  0.8 */
    /* the sum, which is normalised */
    {"residual_layer_norm", 4, 3}, /* 2.0   3.0  1.6 */
    /* the worst are linear with an activation, sum, variance */
    {"", 4, 2}, /*                    2.8   4.7  1.5 */
};

static struct limit limit_of(const char *example)
{
    const struct limit *limit = limits;
    while (!strstr(example, limit->operation))
        limit++;
    return *limit;
}

/* In ulp, for inputs of f64 whose longest axis is a row that may be summed. */
static double f64_limit(const char *example, const struct inputs *in)
{
    int64_t longest = 1;
    for (int i = 0; i < in->n; i++)
        for (int axis = 0; axis < in->x[i]->rank; axis++)
            longest = in->x[i]->dim[axis] > longest ? in->x[i]->dim[axis] : longest;
    if (strcmp(example, "sum") == 0) /* of all elements, with partial sums above it */
        longest = 4 * sb_tensor_size(in->x[0]);
    return 2 * limit_of(example).ulps + sqrt((double)longest / 2) / 2;
}

static void f64_agrees(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F64, 1);
    struct results cpu = example_must_run(e, shapes, &in);
    struct results cuda = results_on(device_cuda(), e, shapes, &in);
    const double ulps = results_relative(&cuda, &cpu) / DBL_EPSILON;
    cr_expect(ulps <= f64_limit(e->name, &in), "%s %s in f64: cuda is off by %g ulp", e->name,
              shapes, ulps);
}

TEST(devices, cuda_agrees_with_the_cpu_in_f64, device_needed())
{
    for_each_example(f64_agrees);
}

/* Rows in the registers of a warp, in those of a block, and rows that do not fit there; aligned to
   16 bytes or not. */
TEST(devices, cuda_agrees_with_the_cpu_on_long_rows, MANY_CASES)
{
    device_needed();
    for_each_long_example(300, f64_agrees);
    for_each_long_example(1030, f64_agrees);
    for_each_long_example(8200, f64_agrees);
}

/* Compared with f64, the error of CUDA is at most twice that of the CPU, or the limit. Twice with
   bf16 too: log_softmax finds dx from the rounded y, whose error |y| 2^-8 is multiplied by the sum
   of dy there as well (4.7 roundings with rows of 1100, of both). */
static void expect_agrees(const struct example *e, const char *shapes, sb_dtype dtype, double least,
                          double rounding)
{
    struct inputs in = inputs_new(shapes, dtype, 1), wide = inputs_widened(&in);
    struct results truth = example_must_run(e, shapes, &wide);
    struct results cpu = example_must_run(e, shapes, &in);
    struct results cuda = results_on(device_cuda(), e, shapes, &in);
    const double limit = fmax(2 * results_relative(&cpu, &truth), least * rounding),
                 error = results_relative(&cuda, &truth);
    cr_expect(error <= limit, "%s %s in %s: cuda is off by %g roundings", e->name, shapes,
              sb_dtype_name(dtype), error / rounding);
}

static void f32_agrees(const struct example *e, const char *shapes)
{
    /* products of 3xTF32 err by up to 8 roundings (ops/ops.h) */
    const double times = strncmp(e->name, "attention", 9) == 0 ? 2 : 1;
    expect_agrees(e, shapes, SB_F32, times * limit_of(e->name).ulps, FLT_EPSILON);
}

static void bf16_agrees(const struct example *e, const char *shapes)
{
    expect_agrees(e, shapes, SB_BF16, limit_of(e->name).roundings, 0x1p-8);
}

TEST(devices, cuda_agrees_with_the_cpu_in_f32, device_needed())
{
    for_each_example(f32_agrees);
}

TEST(devices, cuda_agrees_with_the_cpu_in_bf16, device_needed())
{
    on_the_cpu();
    for_each_example(bf16_agrees);
    for_each_long_example(1100, bf16_agrees);
}

static void repeats(const struct example *e, const char *shapes)
{
    struct inputs in = inputs_new(shapes, SB_F32, 1);
    struct results first = results_on(device_cuda(), e, shapes, &in);
    struct results again = results_on(device_cuda(), e, shapes, &in);
    cr_expect(results_same_bits(&first, &again), "%s %s: a second run changes bits", e->name,
              shapes);
}

TEST(devices, cuda_gives_the_same_bits_again, KNOWN_KERNELS)
{
    device_needed();
    for_each_example(repeats);
}

TEST(devices, every_operation_has_cuda_kernels, device_needed())
{
    for (int i = 0; operation_at(i); i++)
        for (sb_dtype dtype = SB_F32; operation_at(i)->rows && dtype <= SB_F64; dtype++)
            cr_expect(device_cuda()->row(operation_at(i)->name, dtype) != NULL,
                      "%s has no kernels for %s on cuda", operation_at(i)->name,
                      sb_dtype_name(dtype));
}

/* What training runs; the others compute in f32 (ops/call.h). */
TEST(devices, operations_of_training_have_kernels_of_bf16, device_needed())
{
    static const char *const operations[] = {
        "arithmetic", "dropout", "elementwise", "embedding", "expand",      "gather",
        "layer_norm", "linear",  "log_softmax", "matmul",    "permute",     "positions",
        "reduce",     "slice",   "softmax",     "rms_norm",  "l2_normalize"};
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        cr_expect(device_cuda()->row(operations[i], SB_BF16) != NULL,
                  "%s has no kernels for bf16 on cuda", operations[i]);
}

static int nodes_of(const struct open_tape *tape, const char *operation)
{
    int count = 0;
    for (const sb_node *node = tape->last; node; node = node->previous)
        count += node->operation && strcmp(node->operation->name, operation) == 0;
    return count;
}

TEST(devices, bf16_is_not_widened_where_there_are_kernels, device_needed())
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *x = test_leaf(SB_BF16, 1, SB_SHAPE(6, 8));
    sb_tensor *w = test_leaf(SB_BF16, 2, SB_SHAPE(8, 8));
    sb_tensor *b = test_leaf(SB_BF16, 3, SB_SHAPE(8));
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(6)));
    sb_tensor *y = sb_linear_activation(sb_layer_norm(x, b, b, 0), w, b, SB_ACTIVATION_GELU);
    sb_tensor *sum, *normed = sb_residual_layer_norm(x, sb_scale(y, 2), 0.3, b, b, 0, &sum);
    y = sb_matmul(sb_add(normed, sum), sb_transpose(w, 0, 1));
    y = sb_concatenate((sb_tensor *[]){sb_slice(y, 1, 0, 4), sb_slice(y, 1, 4, 4)}, 2, 1);
    y = sb_residual_dropout(y, sb_reshape(sb_softmax(sb_rms_norm(y, b, 0)), SB_SHAPE(6, 8)), 0.5);
    sb_tensor *loss = MUST(sb_linear_cross_entropy(y, w, b, ids, NULL));
    cr_expect(nodes_of(tape_open(), "cast") == 0);
    cr_expect(sb_tensor_dtype(y) == SB_BF16 && sb_tensor_dtype(loss) == SB_F32);
    cr_expect(sb_backward(loss), "%s", sb_error());
    cr_expect(sb_tensor_dtype(sb_tensor_grad(w)) == SB_BF16);
}

/* 1200 terms of 1 in several threads; a sum in bf16 would stop at 256. */
TEST(devices, sums_of_bf16_are_accumulated_in_f32_on_cuda, device_needed())
{
    TAPE(SB_RECORD);
    sb_tensor *ones =
        sb_tape_own(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(1200, 1), 1)));
    sb_tensor *one = sb_tape_own(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(1), 1)));
    sb_tensor *ids = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(1200)));
    cr_expect(sb_tensor_get(sb_sum(ones, 0, false), 0) == 1200);
    cr_expect(sb_tensor_get(sb_matmul_tn(ones, ones), 0) == 1200);
    sb_tensor *table =
        sb_tape_own(sb_tensor_requires_grad(sb_tensor_full(SB_BF16, SB_SHAPE(1, 1), 1)));
    sb_tensor *y = sb_add(sb_linear(ones, table, one), sb_embedding(table, ids));
    MUST(sb_backward_from(y, sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(1200, 1), 1))));
    cr_expect(sb_tensor_get(sb_tensor_grad(one), 0) == 1200 &&
              sb_tensor_get(sb_tensor_grad(table), 0) == 2400);
}

/* Seven chunks of 1024 rows: each adds 516 to a weight's gradient, 3612 in all; rounded once this
   is 3616, rounded after every chunk 3600. */
TEST(devices, chunks_of_a_loss_in_bf16_are_accumulated_in_f32_on_cuda, device_needed())
{
    enum { ROWS = 7 * 1024 };
    TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(ROWS, 1), 1 + 0x1p-7));
    sb_tensor *w = sb_tape_own(sb_tensor_requires_grad(sb_tensor_zeros(SB_BF16, SB_SHAPE(2, 1))));
    sb_tensor *loss =
        sb_linear_cross_entropy(x, w, NULL, sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(ROWS))),
                                &(sb_cross_entropy_options){.reduction = SB_REDUCE_SUM});
    MUST(loss && sb_backward(loss));
    cr_expect(sb_tensor_get(sb_tensor_grad(w), 1) == 3616, "%g",
              sb_tensor_get(sb_tensor_grad(w), 1));
}

/* 257 in the first half of the terms and 1 in the second: 258 is a bf16 number and 257 is not, so
   the sum of halves that are rounded is 256. Several sizes, since cublasLt need not support each.
 */
TEST(devices, sums_that_are_split_are_rounded_once_on_cuda, device_needed())
{
    enum { TERMS = 512 };
    double terms[TERMS] = {2};
    for (int i = 1; i < TERMS / 2; i++)
        terms[i] = 1;
    terms[TERMS / 2] = 1;
    TAPE(SB_RECORD);
    for (int64_t out = 8; out <= 64; out += 8) {
        sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_BF16, SB_SHAPE(1, TERMS), terms));
        sb_tensor *w = sb_tape_own(sb_tensor_full(SB_BF16, SB_SHAPE(out, TERMS), 1));
        sb_tensor *b = sb_tape_own(sb_tensor_zeros(SB_BF16, SB_SHAPE(out)));
        sb_tensor *y = sb_linear(x, w, b);
        cr_expect(y && sb_tensor_get(y, 0) == 258, "%lld columns: %g", (long long)out,
                  y ? sb_tensor_get(y, 0) : 0);
    }
}

TEST(devices, tensors_move_and_keep_their_values, device_needed())
{
    const double values[6] = {1, -2, 3.5, 1e-300, -0.0, 7};
    on_the_cpu();
    sb_tensor *x = sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 3), values));
    sb_tensor *there = sb_tensor_to(x, device_cuda()), *back = sb_tensor_to(there, sb_device_cpu());
    double read[6];
    cr_expect(sb_tensor_device(there) == device_cuda() &&
              sb_tensor_device(back) == sb_device_cpu());
    cr_expect(sb_tensor_read(there, read) && memcmp(read, values, sizeof read) == 0);
    cr_expect(memcmp(sb_tensor_data(back), values, sizeof values) == 0);
    REFUSED("the data lies on cuda", sb_tensor_data(there));
    cr_expect(there->requires_grad && sb_tensor_get(there, 2) == 3.5);
    cr_expect(sb_tensor_set(there, 2, 9) && sb_tensor_get(there, 2) == 9 &&
              sb_tensor_get(x, 2) == 3.5);
    sb_tensor_release(x);
    sb_tensor_release(there);
    sb_tensor_release(back);
    cr_expect(sb_device_memory(device_cuda()).live_blocks == 0);
}

TEST(devices, inputs_on_two_devices_are_refused, device_needed())
{
    on_the_cpu();
    sb_tensor *a = KEPT(sb_tensor_scalar(SB_F32, 1)), *b = KEPT(sb_tensor_to(a, device_cuda()));
    FAILED_TAPE(SB_RECORD);
    REFUSED("cuda", sb_add(a, b));
}

/*
 * Errors that only a kernel sees, an id outside its table or a length beyond the keys: the CPU
 * reports them immediately. On CUDA the operation gives a result, and the next download fails with
 * the message.
 */
struct late_failure {
    const char *shapes; /* of x, then of the ids or lengths or weights */
    sb_function f;
    const char *message;
    int64_t place; /* index in the last input */
    double value;  /* the wrong value there */
};

FUNCTION(embedding, sb_embedding(x[0], x[1]))
FUNCTION(gather, sb_gather(x[0], x[1]))
FUNCTION(cross_entropy, sb_cross_entropy(x[0], x[1], NULL))
FUNCTION(linear_cross_entropy, sb_linear_cross_entropy(x[0], x[1], NULL, x[2], NULL))
FUNCTION(weighted, sb_cross_entropy(x[0], x[1], &(sb_cross_entropy_options){.class_weight = x[2]}))
FUNCTION(masked_softmax, sb_masked_softmax(x[0], sb_mask_lengths(x[1]), 1))

FUNCTION_HEAD(composed_attention)
{
    const sb_attention_options o = {.mask = sb_mask_lengths(x[1]),
                                    .algorithm = SB_ATTENTION_COMPOSED};
    return sb_attention(x[0], x[0], x[0], &o);
}

FUNCTION_HEAD(tiled_attention)
{
    const sb_attention_options o = {.mask = sb_mask_lengths(x[1]), .algorithm = SB_ATTENTION_TILED};
    return sb_attention(x[0], x[0], x[0], &o);
}

static const struct late_failure late_failures[] = {
    {"10x2 i10:1500x3", embedding, "embedding: ids[3602] is not in 0..9", 3602, -1},
    {"10x2 i10:1500x3", embedding, "embedding: ids[3602] is not in 0..9", 3602, 10},
    {"10x2 i10:7", embedding, "embedding: ids[6] is not in 0..9", 6, INT32_MAX},
    {"10x2 i10:7", embedding, "embedding: ids[0] is not in 0..9", 0, INT32_MIN},
    {"4x3 i3:4", gather, "gather: ids[2] is not in 0..2", 2, 3},
    {"4x3 i3:4", gather, "gather: ids[2] is not in 0..2", 2, -1},
    {"2x3x4 i4:2x3", cross_entropy, "cross_entropy: targets[4] is not", 4, 4},
    {"5x2 3x2 i3:5", linear_cross_entropy, "cross_entropy: targets[3] is not", 3, 300},
    {"4x3 i3:4 +3", weighted, "class_weight[1] is not a finite number >= 0", 1, -1},
    {"4x3 i3:4 +3", weighted, "class_weight[2] is not a finite number >= 0", 2, (double)NAN},
    {"2x1x3x5 i6:2", masked_softmax, "lengths[1] is not in 0..5", 1, 6},
    {"2x1x3x5 i6:2", masked_softmax, "lengths[0] is not in 0..5", 0, -1},
    {"2x7x1x8 i8:2", composed_attention, "lengths[1] is not in 0..7", 1, 8},
    {"2x7x1x8 i8:2", tiled_attention, "lengths[1] is not in 0..7", 1, 1 << 30},
};

/* Reads y if possible. */
static bool can_be_read(const sb_tensor *y)
{
    double *numbers = KEPT(calloc((size_t)sb_tensor_size(y) + 1, sizeof *numbers));
    return sb_tensor_read(y, numbers);
}

/* Runs forward and backward and reads all results; returns whether all succeeded. */
static bool can_be_used(const struct late_failure *c, sb_tensor *const x[])
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = sb_keep(c->f(NULL, x));
    bool ok = y && sb_backward(sb_sum(y, SB_ALL, false)) && can_be_read(y);
    ok = ok && can_be_read(sb_tensor_grad(x[0]));
    sb_tensor_clear_grad(x[0]);
    return sb_tape_end(&tape) && ok;
}

TEST(devices, errors_that_only_a_kernel_sees_are_named_by_the_next_download, device_needed())
{
    for (size_t i = 0; i < sizeof late_failures / sizeof *late_failures; i++) {
        const struct late_failure *c = &late_failures[i];
        struct inputs in = inputs_new(c->shapes, SB_F32, 1);
        sb_tensor *last = in.x[in.n - 1];
        const double right = sb_tensor_get(last, c->place);
        cr_assert(can_be_used(c, in.x), "%s: %s", c->message, sb_error());
        cr_assert(sb_tensor_set(last, c->place, c->value));
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *y = c->f(NULL, in.x);
        cr_assert(y, "%s: the host waits: %s", c->message, sb_error());
        REFUSED(c->message, can_be_read(y));
        cr_expect(!sb_tape_end(&tape));
        cr_expect(can_be_read(last), "the error is reported twice: %s", sb_error());
        sb_tape_begin(&tape, SB_RECORD);
        cr_expect(c->f(NULL, in.x) && !sb_device_synchronize(device_cuda()));
        EXPECT_ERROR(c->message);
        cr_expect(!sb_tape_end(&tape));
        cr_assert(sb_tensor_set(last, c->place, right));
        cr_expect(can_be_used(c, in.x), "%s, then corrected: %s", c->message, sb_error());
    }
}

/* Backward reads the ids again, and reports ids that have become invalid. That of
   linear_cross_entropy does not read them: forward has computed the gradients. */
TEST(devices, ids_that_change_before_backward_are_named, device_needed())
{
    for (size_t i = 0; i < sizeof late_failures / sizeof *late_failures; i++) {
        const struct late_failure *c = &late_failures[i];
        struct inputs in = inputs_new(c->shapes, SB_F32, 1);
        sb_tensor *last = in.x[in.n - 1];
        if (last->dtype != SB_I32 || strstr(c->message, "lengths") ||
            c->f == linear_cross_entropy) {
            continue;
        }
        FAILED_TAPE(SB_RECORD);
        sb_tensor *y = c->f(NULL, in.x), *loss = sb_sum(y, SB_ALL, false);
        const int32_t id = (int32_t)c->value; /* as by a kernel of the caller's: unnoticed */
        MUST(loss && last->device->upload((int32_t *)last->data + c->place, &id, sizeof id));
        cr_expect(!sb_backward(loss) || !can_be_read(sb_tensor_grad(in.x[0])), "%s", c->message);
        EXPECT_ERROR(c->message);
    }
}

TEST(devices, a_mean_over_no_targets_is_named_by_the_next_download, device_needed())
{
    FAILED_TAPE(SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2, 3)));
    sb_tensor *ids = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(2), -1));
    cr_expect(isnan(sb_tensor_value(sb_cross_entropy(x, ids, NULL))));
    EXPECT_ERROR("cross_entropy: none of 2 targets counts (ignored or weight 0): the mean is 0/0");
}

/* A loss of rows of 1024 numbers through four softmaxes, forward and backward. */
static bool softmaxes_fit(int64_t rows)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(rows, 1024))), *y = x;
    for (int i = 0; i < 4; i++)
        y = sb_softmax(y);
    const bool ok = sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false));
    const bool ended = sb_tape_end(&tape);
    sb_tensor_release(x);
    return ok && ended;
}

/* Nine arrays of 4 KiB a row at the least, in 16 MiB. */
TEST(devices, a_smaller_batch_works_after_memory_has_run_out)
{
    if (device_opened())
        cr_skip_test("the device is open, with all of its memory");
    setenv("SOFTBACK_EMULATOR_MEMORY", "16777216", 1);
    device_needed();
    if (!test_slow_device())
        cr_skip_test("a real device has too much memory to fill");
    for (int i = 0; i < 3; i++) {
        cr_expect(softmaxes_fit(128 << i % 2), "%s", sb_error());
        REFUSED("out of memory for (1024, 1024) of f32, 4194304 bytes on cuda",
                softmaxes_fit(1024));
    }
    cr_expect(sb_device_memory(device_cuda()).live_blocks == 0);
}

/* The choice among several GPUs. A suite of its own, since a process uses one. */

static void *run_softmax(void *ok_)
{
    bool *ok = ok_;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(4)));
    sb_tensor *y = sb_softmax(x);
    *ok = y && sb_tensor_get(y, 3) == 0.25;
    if (!*ok)
        cr_log_info("%s", sb_error());
    *ok = sb_tape_end(&tape) && *ok;
    return NULL;
}

CPU_TEST(device_choice, every_thread_uses_the_chosen_one)
{
    setenv("SOFTBACK_EMULATOR_DEVICES", "2", 1);
    setenv("SOFTBACK_CUDA", "emulated", 0);
    if (strcmp(getenv("SOFTBACK_CUDA"), "emulated") != 0)
        cr_skip_test("a machine may have one device only");
    REFUSED("-1 is no number of a GPU; the first is 0", sb_choose_cuda(-1));
    cr_assert(sb_choose_cuda(1));
    device_needed();
    REFUSED("this process uses GPU 1; choose another before its first use", sb_choose_cuda(0));
    cr_expect(sb_choose_cuda(1), "the same again");
    cr_expect(strstr(sb_device_description(device_cuda()), ", device 1 of 0 to 1"), "%s",
              sb_device_description(device_cuda()));
    sb_use_device(device_cuda());
    bool here = false, there = false;
    pthread_t thread;
    run_softmax(&here);
    cr_assert(pthread_create(&thread, NULL, run_softmax, &there) == 0);
    pthread_join(thread, NULL);
    cr_expect(here && there, "%d and %d", here, there);
    sb_use_device(NULL);
}

/*
 * A device that a kernel has put out of order: every later call fails, and says so. A suite of its
 * own, since the process cannot use the device afterwards.
 */

static bool softmax_fails(sb_tensor *x)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *y = sb_softmax(x);
    double numbers[4];
    const bool ok = y && sb_tensor_read(y, numbers);
    return !(sb_tape_end(&tape) && ok);
}

TEST(lost_device, is_told_from_an_ordinary_error_by_every_later_call, device_needed())
{
    if (!test_slow_device())
        cr_skip_test("some real devices can read host memory");
    static float host[4];
    sb_tensor *x = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(4)));
    void *data = x->data;
    cr_expect(!device_cuda()->copy(NULL, NULL, 4));
    cr_expect(strstr(sb_error(), "invalid argument") && !strstr(sb_error(), "lost"), "%s",
              sb_error());
    cr_expect(!softmax_fails(x), "%s", sb_error());
    x->data = host;
    for (int again = 0; again < 3; again++) {
        cr_expect(softmax_fails(x));
        EXPECT_ERROR("the device is lost to this program");
        x->data = data;
    }
    cr_expect(!sb_tensor_zeros(SB_F32, SB_SHAPE(12345)), "memory that no cache holds");
    EXPECT_ERROR("the device is lost to this program");
}
