/*
 * Memory-bound operations, forward and backward, compared with a copy of the bytes that each must
 * at least read and write: softmax and layer norm read x and write y, then read one of the two and
 * dy and write dx; cross entropy reads x twice and writes dx; Adam reads the gradient, and reads
 * and writes weights and two moments.
 */
#include "autograd/tape.h"
#include "nn/optimiser.h"
#include "ops/ops.h"
#include "program/bench/bench.h"

struct operation {
    const char *name;
    sb_tensor *(*f)(sb_tensor *const x[]);
    int64_t rows, columns;
    double passes; /* over a matrix of this size */
};

static sb_tensor *bench_softmax(sb_tensor *const x[])
{
    return sb_softmax(x[0]);
}

static sb_tensor *bench_layer_norm(sb_tensor *const x[])
{
    return sb_layer_norm(x[0], x[2], x[3], 0);
}

static sb_tensor *bench_cross_entropy(sb_tensor *const x[])
{
    return sb_cross_entropy(x[0], x[4], NULL);
}

/* Each matrix has 2^26 elements. */
static const struct operation operations[] = {
    {"softmax", bench_softmax, 8192, 8192, 5},
    {"layer norm", bench_layer_norm, 65536, 1024, 5},
    {"cross entropy", bench_cross_entropy, 2048, 32768, 3},
};

struct call {
    const struct operation *operation;
    sb_tensor *x[5]; /* x, dy, gain, bias, targets */
};

static double bench_call_once(void *context)
{
    const struct call *c = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    const double begun = bench_clock();
    sb_tensor *y = c->operation->f(c->x);
    bool ok = y && (sb_tensor_size(y) == 1 ? sb_backward(y) : sb_backward_from(y, c->x[1]));
    const double seconds = bench_since(begun, ok);
    for (int i = 0; i < 4; i++)
        sb_tensor_clear_grad(c->x[i]);
    return sb_tape_end(&tape) ? seconds : -1;
}

static bool bench_operation(struct bench *bench, const struct operation *o, sb_dtype dtype)
{
    const int64_t smaller = bench->quick ? 512 : bench->gpu ? 1 : 8;
    const int64_t rows = o->rows / smaller, columns = bench->quick ? 64 : o->columns;
    struct call c = {
        o,
        {bench_values(dtype, 1, SB_SHAPE(rows, columns)),
         bench_values(dtype, 2, SB_SHAPE(rows, columns)), bench_values(dtype, 3, SB_SHAPE(columns)),
         bench_values(dtype, 4, SB_SHAPE(columns)), sb_tensor_full(SB_I32, SB_SHAPE(rows), 7)}};
    bool ok = sb_tensor_requires_grad(c.x[0]) && sb_tensor_requires_grad(c.x[2]) &&
              sb_tensor_requires_grad(c.x[3]) && c.x[1] && c.x[4];
    const double seconds = ok ? bench_median(bench, BENCH_COPY, bench_call_once, &c) : -1;
    for (int i = 0; i < 5; i++)
        sb_tensor_release(c.x[i]);
    const double bytes = (dtype == SB_F32 ? 4 : 2) * o->passes * (double)(rows * columns);
    if (seconds >= 0)
        bench_print(bench, &(struct bench_row){.group = "operation",
                                               .name = o->name,
                                               .way = sb_dtype_name(dtype),
                                               .seconds = seconds,
                                               .amount = bytes,
                                               .unit = "B/s",
                                               .limit = BENCH_COPY,
                                               .work = bytes});
    return seconds >= 0;
}

struct update {
    sb_parameters *weights;
    sb_optimiser *adam;
};

static double bench_update_once(void *context)
{
    const struct update *u = context;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = sb_backward(sb_sum(sb_parameters_get(u->weights, 0), SB_ALL, false));
    ok = sb_tape_end(&tape) && ok;
    const double begun = bench_clock();
    return bench_since(begun, ok && sb_optimiser_step(u->adam));
}

static bool bench_adam(struct bench *bench)
{
    const int64_t n = bench->quick ? 1 << 10 : bench->gpu ? 1 << 26 : 1 << 23;
    struct update u = {.weights = sb_parameters_new(1)};
    const sb_initial initial = {SB_INITIAL_CONSTANT, 0.5};
    bool ok = u.weights && sb_parameters_add(u.weights, "w", SB_SHAPE(n), initial);
    u.adam = ok ? sb_adam_new(u.weights, NULL) : NULL;
    const double seconds = u.adam ? bench_median(bench, BENCH_COPY, bench_update_once, &u) : -1;
    sb_optimiser_free(u.adam);
    sb_parameters_free(u.weights);
    const double bytes = 7 * 4 * (double)n;
    if (seconds >= 0)
        bench_print(bench, &(struct bench_row){.group = "operation",
                                               .name = "adam",
                                               .way = "f32",
                                               .seconds = seconds,
                                               .amount = bytes,
                                               .unit = "B/s",
                                               .limit = BENCH_COPY,
                                               .work = bytes});
    return seconds >= 0;
}

bool bench_operations(struct bench *bench)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (!bench_operation(bench, &operations[i], SB_F32) ||
            (bench->gpu && !bench_operation(bench, &operations[i], SB_BF16)))
            return false;
    return bench_adam(bench);
}
