/* Jobs of single operations, forward and backward from a given gradient; of Adam; of a product. */
#include "autograd/tape.h"
#include "nn/optimiser.h"
#include "ops/gemm.h"
#include "ops/ops.h"
#include "program/bench/job.h"
#include "tensor/memory.h"
#include <math.h>

enum { MOST_INPUTS = 3 };

struct operation {
    sb_tensor *(*forward)(const struct operation *operation);
    sb_dtype dtype;
    int inputs; /* that require a gradient */
    sb_tensor *x[MOST_INPUTS];
    const char *name[MOST_INPUTS];
    sb_tensor *dy;  /* NULL if the result is a loss */
    sb_tensor *ids; /* of cross entropy */
    bool causal;    /* of attention, as is the rest */
    int64_t window;
    sb_attention_options options;
};

static void operation_close(void *job)
{
    struct operation *o = job;
    for (int i = 0; i < MOST_INPUTS; i++)
        sb_tensor_release(o->x[i]);
    sb_tensor_release(o->dy);
    sb_tensor_release(o->ids);
}

static bool operation_add(struct operation *o, const char *name, int rank, const int64_t *dim)
{
    const int i = o->inputs++;
    o->name[i] = name;
    o->x[i] = bench_values(o->dtype, (uint32_t)i + 1, rank, dim);
    return sb_tensor_requires_grad(o->x[i]) != NULL;
}

static bool operation_add_dy(struct operation *o, int rank, const int64_t *dim)
{
    o->dy = bench_values(o->dtype, MOST_INPUTS + 1, rank, dim);
    return o->dy != NULL;
}

static int operation_tensors(void *job, sb_named_tensor items[])
{
    const struct operation *o = job;
    for (int i = 0; items && i < o->inputs; i++)
        items[i] = (sb_named_tensor){o->name[i], o->x[i]};
    if (items)
        items[o->inputs] =
            o->dy ? (sb_named_tensor){"dy", o->dy} : (sb_named_tensor){"ids", o->ids};
    return o->inputs + 1;
}

/* Runs forward and backward; the measures of result and gradients go to `numbers` unless NULL. */
static double operation_run(void *job, struct job_numbers *numbers)
{
    struct operation *o = job;
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    const double begun = bench_clock();
    sb_tensor *y = o->forward(o);
    bool ok = !numbers || job_add_measure(numbers, y);
    ok = ok && (o->dy ? sb_backward_from(y, o->dy) : sb_backward(y));
    const double seconds = bench_since(begun, ok);
    for (int i = 0; i < o->inputs; i++) {
        ok = ok && (!numbers || job_add_measure(numbers, sb_tensor_grad(o->x[i])));
        sb_tensor_clear_grad(o->x[i]);
    }
    return sb_tape_end(&tape) && ok ? seconds : -1;
}

/* ---- attention ---- */

static sb_tensor *attention_forward(const struct operation *o)
{
    sb_attention_options options = o->options;
    if (o->window)
        options.mask = sb_mask_window(o->window - 1, 0);
    else if (o->causal)
        options.mask = sb_mask_causal();
    return sb_attention(o->x[0], o->x[1], o->x[2], &options);
}

static bool attention_open(void *job, const char *line)
{
    const int64_t dim[] = {1, job_size(line, "n"), job_size(line, "heads"), job_size(line, "size")};
    struct operation *o = job;
    *o = (struct operation){.forward = attention_forward,
                            .dtype = job_dtype(line),
                            .causal = job_flag(line, "causal"),
                            .window = job_size(line, "window"),
                            .options.dropout = job_number(line, "dropout")};
    o->options.algorithm = job_flag(line, "composed") ? SB_ATTENTION_COMPOSED
                           : job_flag(line, "tiled")  ? SB_ATTENTION_TILED
                                                      : SB_ATTENTION_AUTOMATIC;
    return operation_add(o, "q", 4, dim) && operation_add(o, "k", 4, dim) &&
           operation_add(o, "v", 4, dim) && operation_add_dy(o, 4, dim);
}

/* Six products over the pairs that the mask keeps; tiled backward computes a seventh. */
static struct job_work attention_work(const char *line)
{
    const double N = job_number(line, "n"), window = fmin(job_number(line, "window"), N);
    const double kept = window > 0                 ? N * window - window * (window - 1) / 2
                        : job_flag(line, "causal") ? N * (N + 1) / 2
                                                   : N * N;
    return (struct job_work){.operations =
                                 12 * job_number(line, "size") * job_number(line, "heads") * kept};
}

/* ---- operations on a matrix ---- */

/* So many passes over the matrix, and arrays of its size. */
static struct job_work matrix_work(const char *line, double passes, double arrays)
{
    const double bytes = job_number(line, "rows") * job_number(line, "columns") *
                         (double)sb_dtype_bytes(job_dtype(line));
    return (struct job_work){.bytes = passes * bytes, .memory = arrays * bytes};
}

/* Reads x and writes y, then reads one of the two and dy, and writes dx. */
static struct job_work norm_work(const char *line)
{
    return matrix_work(line, 5, 4);
}

static sb_tensor *softmax_forward(const struct operation *o)
{
    return sb_softmax(o->x[0]);
}

static bool softmax_open(void *job, const char *line)
{
    const int64_t rows = job_size(line, "rows"), columns = job_size(line, "columns");
    struct operation *o = job;
    *o = (struct operation){.forward = softmax_forward, .dtype = job_dtype(line)};
    return operation_add(o, "x", SB_SHAPE(rows, columns)) &&
           operation_add_dy(o, SB_SHAPE(rows, columns));
}

static sb_tensor *layer_norm_forward(const struct operation *o)
{
    return sb_layer_norm(o->x[0], o->x[1], o->x[2], 0);
}

static bool layer_norm_open(void *job, const char *line)
{
    const int64_t rows = job_size(line, "rows"), columns = job_size(line, "columns");
    struct operation *o = job;
    *o = (struct operation){.forward = layer_norm_forward, .dtype = job_dtype(line)};
    return operation_add(o, "x", SB_SHAPE(rows, columns)) &&
           operation_add(o, "gain", SB_SHAPE(columns)) &&
           operation_add(o, "bias", SB_SHAPE(columns)) &&
           operation_add_dy(o, SB_SHAPE(rows, columns));
}

static sb_tensor *cross_entropy_forward(const struct operation *o)
{
    return sb_cross_entropy(o->x[0], o->ids, NULL);
}

static bool cross_entropy_add_ids(struct operation *o, int64_t rows, int64_t columns)
{
    int32_t *id = memory_new((size_t)rows * sizeof *id);
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int64_t i = 0; id && i < rows; i++)
        id[i] = (int32_t)sb_random_below(&random, (uint32_t)columns);
    o->ids = id ? sb_tensor_from(SB_I32, SB_SHAPE(rows), id) : sb_fail("bench: out of memory");
    memory_free(id);
    return o->ids != NULL;
}

static bool cross_entropy_open(void *job, const char *line)
{
    const int64_t rows = job_size(line, "rows"), columns = job_size(line, "columns");
    struct operation *o = job;
    *o = (struct operation){.forward = cross_entropy_forward, .dtype = job_dtype(line)};
    return operation_add(o, "x", SB_SHAPE(rows, columns)) &&
           cross_entropy_add_ids(o, rows, columns);
}

/* Reads x twice, and writes dx. */
static struct job_work cross_entropy_work(const char *line)
{
    return matrix_work(line, 3, 2);
}

#define OPERATION(name, needs, work)                                                               \
    {                                                                                              \
#name, needs, sizeof(struct operation), work, name##_open, operation_run, 1,               \
            operation_tensors, NULL, operation_close                                               \
    }

const struct job_kind job_attention = OPERATION(attention, "n heads size", attention_work);
const struct job_kind job_softmax = OPERATION(softmax, "rows columns", norm_work);
const struct job_kind job_layer_norm = OPERATION(layer_norm, "rows columns", norm_work);
const struct job_kind job_cross_entropy =
    OPERATION(cross_entropy, "rows columns", cross_entropy_work);

/* ---- a step of Adam: weights begin at 0, so that their measure is that of the steps ---- */

enum { ADAM_STEPS = 3 };

struct adam {
    sb_parameters *weights;
    sb_tensor *w, *gradient[2]; /* in turns */
    sb_optimiser *adam;
    int64_t steps;
};

static void adam_close(void *job)
{
    struct adam *a = job;
    sb_tensor_release(a->gradient[0]);
    sb_tensor_release(a->gradient[1]);
    sb_optimiser_free(a->adam);
    sb_parameters_free(a->weights);
}

static bool adam_open(void *job, const char *line)
{
    const int64_t n = job_size(line, "size");
    struct adam *a = job;
    return (a->weights = sb_parameters_new(1)) &&
           (a->w = sb_parameters_add(a->weights, "w", SB_SHAPE(n),
                                     (sb_initial){SB_INITIAL_CONSTANT, 0})) &&
           (a->gradient[0] = bench_values(SB_F32, 1, SB_SHAPE(n))) &&
           (a->gradient[1] = bench_values(SB_F32, 2, SB_SHAPE(n))) &&
           (a->adam = sb_adam_new(a->weights, NULL));
}

static int adam_tensors(void *job, sb_named_tensor items[])
{
    const struct adam *a = job;
    for (int i = 0; items && i < 2; i++)
        items[i] = (sb_named_tensor){i ? "gradient.1" : "gradient.0", a->gradient[i]};
    return 2;
}

/* The optimiser consumes gradients: each step is given a new one, before the clock runs. The
   measure of the weights is that after the last of the checked steps. */
static double adam_run(void *job, struct job_numbers *numbers)
{
    struct adam *a = job;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = sb_backward_from(a->w, a->gradient[a->steps++ % 2]);
    ok = sb_tape_end(&tape) && ok;
    const double begun = bench_clock();
    const double seconds = bench_since(begun, ok && sb_optimiser_step(a->adam));
    ok = !numbers || a->steps % ADAM_STEPS != 0 || job_add_measure(numbers, a->w);
    return ok ? seconds : -1;
}

/* It reads the gradient, and reads and writes weights and two moments. */
static struct job_work adam_work(const char *line)
{
    const double n = job_number(line, "size");
    return (struct job_work){.bytes = 28 * n, .memory = 16 * n};
}

const struct job_kind job_adam = {
    .name = "adam",
    .needs = "size",
    .size = sizeof(struct adam),
    .work = adam_work,
    .open = adam_open,
    .run = adam_run,
    .checked = ADAM_STEPS,
    .tensors = adam_tensors,
    .close = adam_close,
};

/* ---- a matrix product ---- */

/* On the CPU with the built-in product, or OpenBLAS with "blas=1"; elsewhere, as of bf16, with
   sb_matmul. */
struct product {
    gemm_function *gemm; /* NULL: sb_matmul */
    bool ta, tb;
    int64_t m, n, k;
    sb_tensor *a, *b, *c;
};

static void product_close(void *job)
{
    struct product *p = job;
    sb_tensor_release(p->a);
    sb_tensor_release(p->b);
    sb_tensor_release(p->c);
}

static bool product_open(void *job, const char *line)
{
    struct product *p = job;
    const sb_dtype dtype = job_flag(line, "f64") ? SB_F64 : job_dtype(line);
    p->m = job_size(line, "m");
    p->n = job_size(line, "n");
    p->k = job_size(line, "k");
    p->ta = job_flag(line, "transpose_a");
    p->tb = job_flag(line, "transpose_b");
    if (sb_device_in_use() == sb_device_cpu() && dtype != SB_BF16) {
        const struct gemm_kernels *kernels = gemm_rows.row[kernel_cpu_set()][dtype];
        p->gemm = job_flag(line, "blas") ? kernels->blas : kernels->builtin;
        p->c = sb_tensor_full(dtype, SB_SHAPE(p->m, p->n), 0);
    }
    if (!p->gemm && (p->ta || p->tb || job_flag(line, "blas")))
        return sb_fail("bench: \"%s\": this is for the CPU, with OpenBLAS for blas=1", line);
    p->a = bench_values(dtype, 1, SB_SHAPE(p->m, p->k));
    p->b = bench_values(dtype, 2, SB_SHAPE(p->k, p->n));
    return p->a && p->b && (p->c || !p->gemm);
}

static int product_tensors(void *job, sb_named_tensor items[])
{
    const struct product *p = job;
    for (int i = 0; items && i < 2; i++)
        items[i] = (sb_named_tensor){i ? "b" : "a", i ? p->b : p->a};
    return 2;
}

static double product_run(void *job, struct job_numbers *numbers)
{
    const struct product *p = job;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const double begun = bench_clock();
    const sb_tensor *c = p->c;
    bool ok = true;
    if (p->gemm)
        ok = p->gemm(p->ta, p->tb, p->m, p->n, p->k, sb_tensor_data(p->a), p->ta ? p->m : p->k,
                     sb_tensor_data(p->b), p->tb ? p->k : p->n, 0, sb_tensor_data(p->c), p->n);
    else
        ok = (c = sb_matmul(p->a, p->b)) != NULL;
    const double seconds = bench_since(begun, ok);
    ok = seconds >= 0 && (!numbers || job_add_measure(numbers, c));
    return sb_tape_end(&tape) && ok ? seconds : -1;
}

static struct job_work product_work(const char *line)
{
    return (struct job_work){.operations = 2 * job_number(line, "m") * job_number(line, "n") *
                                           job_number(line, "k")};
}

const struct job_kind job_product = {
    .name = "product",
    .needs = "m n k",
    .size = sizeof(struct product),
    .work = product_work,
    .open = product_open,
    .run = product_run,
    .checked = 1,
    .tensors = product_tensors,
    .close = product_close,
};
