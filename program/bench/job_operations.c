/* Single operations, forward and backward from a given gradient. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "program/bench/job.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>

enum { MOST_INPUTS = 3 };

struct operation {
    sb_tensor *(*run)(const struct operation *operation);
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
    memory_free(o);
}

static struct operation *operation_new(const char *line,
                                       sb_tensor *(*run)(const struct operation *))
{
    struct operation *o = memory_new(sizeof *o);
    if (!o)
        return sb_fail("bench: out of memory");
    o->run = run;
    o->dtype = job_dtype(line);
    return o;
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

static void *operation_or_null(struct operation *o, bool ok)
{
    if (ok)
        return o;
    if (o)
        operation_close(o);
    return NULL;
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
static double operation_run(struct operation *o, struct job_numbers *numbers)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    const double begun = bench_clock();
    sb_tensor *y = o->run(o);
    bool ok = !numbers || job_add_measure(numbers, y);
    ok = ok && (o->dy ? sb_backward_from(y, o->dy) : sb_backward(y));
    const double seconds = bench_since(begun, ok);
    for (int i = 0; i < o->inputs; i++) {
        ok = ok && (!numbers || job_add_measure(numbers, sb_tensor_grad(o->x[i])));
        sb_tensor_clear_grad(o->x[i]);
    }
    return sb_tape_end(&tape) && ok ? seconds : -1;
}

static double operation_step(void *job)
{
    return operation_run(job, NULL);
}

static bool operation_check(void *job, struct job_numbers *numbers)
{
    return operation_run(job, numbers) >= 0;
}

/* ---- attention ---- */

static sb_tensor *attention_run(const struct operation *o)
{
    sb_attention_options options = o->options;
    if (o->window)
        options.mask = sb_mask_window(o->window - 1, 0);
    else if (o->causal)
        options.mask = sb_mask_causal();
    return sb_attention(o->x[0], o->x[1], o->x[2], &options);
}

static bool attention_sizes(const char *line, int64_t *n, int64_t *heads, int64_t *size)
{
    return job_whole(line, "n", n) && job_whole(line, "heads", heads) &&
           job_whole(line, "size", size);
}

static void *attention_open(const char *line)
{
    int64_t n, heads, size;
    struct operation *o = operation_new(line, attention_run);
    if (!o || !attention_sizes(line, &n, &heads, &size))
        return operation_or_null(o, false);
    o->causal = job_flag(line, "causal");
    o->window = (int64_t)job_option(line, "window");
    o->options.dropout = job_option(line, "dropout");
    o->options.algorithm = job_flag(line, "composed") ? SB_ATTENTION_COMPOSED
                           : job_flag(line, "tiled")  ? SB_ATTENTION_TILED
                                                      : SB_ATTENTION_AUTOMATIC;
    return operation_or_null(o, operation_add(o, "q", SB_SHAPE(1, n, heads, size)) &&
                                    operation_add(o, "k", SB_SHAPE(1, n, heads, size)) &&
                                    operation_add(o, "v", SB_SHAPE(1, n, heads, size)) &&
                                    operation_add_dy(o, SB_SHAPE(1, n, heads, size)));
}

/* Six products over the pairs that the mask keeps; tiled backward computes a seventh. */
static bool attention_work(const char *line, struct job_work *work)
{
    int64_t n, heads, size;
    if (!attention_sizes(line, &n, &heads, &size))
        return false;
    const double N = (double)n, window = fmin(job_option(line, "window"), N);
    const double kept = window > 0                 ? N * window - window * (window - 1) / 2
                        : job_flag(line, "causal") ? N * (N + 1) / 2
                                                   : N * N;
    *work = (struct job_work){.operations = 12 * (double)(size * heads) * kept};
    return true;
}

/* ---- operations on a matrix ---- */

static bool matrix_sizes(const char *line, int64_t *rows, int64_t *columns)
{
    return job_whole(line, "rows", rows) && job_whole(line, "columns", columns);
}

/* So many passes over the matrix, and arrays of its size. */
static bool matrix_work(const char *line, struct job_work *work, double passes, double arrays)
{
    int64_t rows, columns;
    if (!matrix_sizes(line, &rows, &columns))
        return false;
    const double bytes = (double)(rows * columns) * (double)sb_dtype_bytes(job_dtype(line));
    *work = (struct job_work){.bytes = passes * bytes, .memory = arrays * bytes};
    return true;
}

/* Reads x and writes y, then reads one of the two and dy, and writes dx. */
static bool norm_work(const char *line, struct job_work *work)
{
    return matrix_work(line, work, 5, 4);
}

static sb_tensor *softmax_run(const struct operation *o)
{
    return sb_softmax(o->x[0]);
}

static void *softmax_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(line, softmax_run);
    return operation_or_null(o, o && matrix_sizes(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    operation_add_dy(o, SB_SHAPE(rows, columns)));
}

static sb_tensor *layer_norm_run(const struct operation *o)
{
    return sb_layer_norm(o->x[0], o->x[1], o->x[2], 0);
}

static void *layer_norm_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(line, layer_norm_run);
    return operation_or_null(o, o && matrix_sizes(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    operation_add(o, "gain", SB_SHAPE(columns)) &&
                                    operation_add(o, "bias", SB_SHAPE(columns)) &&
                                    operation_add_dy(o, SB_SHAPE(rows, columns)));
}

static sb_tensor *cross_entropy_run(const struct operation *o)
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

static void *cross_entropy_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(line, cross_entropy_run);
    return operation_or_null(o, o && matrix_sizes(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    cross_entropy_add_ids(o, rows, columns));
}

/* Reads x twice, and writes dx. */
static bool cross_entropy_work(const char *line, struct job_work *work)
{
    return matrix_work(line, work, 3, 2);
}

#define OPERATION(name, work)                                                                      \
    {                                                                                              \
#name, work, name##_open, operation_step, operation_check, operation_tensors, NULL,        \
            operation_close                                                                        \
    }

const struct job_kind job_attention = OPERATION(attention, attention_work);
const struct job_kind job_softmax = OPERATION(softmax, norm_work);
const struct job_kind job_layer_norm = OPERATION(layer_norm, norm_work);
const struct job_kind job_cross_entropy = OPERATION(cross_entropy, cross_entropy_work);
