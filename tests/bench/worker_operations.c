/* Single operations, forward and backward from a given gradient, and Adam. */
#include "autograd/tape.h"
#include "nn/optimiser.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include "tests/bench/worker.h"

enum { MOST_INPUTS = 3 };

struct operation {
    sb_tensor *(*run)(const struct operation *operation);
    int inputs; /* that require a gradient */
    sb_tensor *x[MOST_INPUTS];
    const char *name[MOST_INPUTS];
    sb_tensor *dy;  /* NULL if the result is a loss */
    sb_tensor *ids; /* of cross entropy */
    bool causal;    /* attention */
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

static struct operation *operation_new(sb_tensor *(*run)(const struct operation *))
{
    struct operation *o = memory_new(sizeof *o);
    if (!o)
        return sb_fail("worker: out of memory");
    o->run = run;
    return o;
}

static bool operation_add(struct operation *o, const char *name, int rank, const int64_t *dim)
{
    const int i = o->inputs++;
    o->name[i] = name;
    o->x[i] = worker_values((uint64_t)i + 1, rank, dim);
    return sb_tensor_requires_grad(o->x[i]) != NULL;
}

static bool operation_add_dy(struct operation *o, int rank, const int64_t *dim)
{
    o->dy = worker_values(MOST_INPUTS + 1, rank, dim);
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

static bool operation_save(void *job, const char *path)
{
    const struct operation *o = job;
    sb_named_tensor items[MOST_INPUTS + 1];
    int n = 0;
    for (; n < o->inputs; n++)
        items[n] = (sb_named_tensor){o->name[n], o->x[n]};
    items[n] = o->dy ? (sb_named_tensor){"dy", o->dy} : (sb_named_tensor){"ids", o->ids};
    return sb_safetensors_save(path, n + 1, items, 0, NULL);
}

static double operation_step(void *job)
{
    const struct operation *o = job;
    sb_tape tape;
    const double begun = worker_clock();
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = o->run(o);
    bool ok = o->dy ? sb_backward_from(y, o->dy) : sb_backward(y);
    for (int i = 0; i < o->inputs; i++)
        sb_tensor_clear_grad(o->x[i]);
    ok = sb_tape_end(&tape) && ok;
    return ok ? worker_clock() - begun : -1;
}

static bool operation_check(void *job, struct numbers *numbers)
{
    const struct operation *o = job;
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = o->run(o);
    bool ok =
        numbers_add_measure(numbers, y) && (o->dy ? sb_backward_from(y, o->dy) : sb_backward(y));
    for (int i = 0; i < o->inputs; i++) {
        ok = ok && numbers_add_measure(numbers, sb_tensor_grad(o->x[i]));
        sb_tensor_clear_grad(o->x[i]);
    }
    return sb_tape_end(&tape) && ok;
}

static sb_tensor *run_attention(const struct operation *o)
{
    const sb_attention_options options = {.mask = o->causal ? sb_mask_causal() : NULL};
    return sb_attention(o->x[0], o->x[1], o->x[2], &options);
}

static void *attention_open(const char *line)
{
    int64_t n, heads, size, causal;
    struct operation *o = operation_new(run_attention);
    bool ok = o && worker_whole(line, "n", &n) && worker_whole(line, "heads", &heads) &&
              worker_whole(line, "size", &size) && worker_whole(line, "causal", &causal);
    ok = ok && operation_add(o, "q", SB_SHAPE(1, n, heads, size)) &&
         operation_add(o, "k", SB_SHAPE(1, n, heads, size)) &&
         operation_add(o, "v", SB_SHAPE(1, n, heads, size)) &&
         operation_add_dy(o, SB_SHAPE(1, n, heads, size));
    if (ok)
        o->causal = causal != 0;
    return operation_or_null(o, ok);
}

static bool worker_matrix(const char *line, int64_t *rows, int64_t *columns)
{
    return worker_whole(line, "rows", rows) && worker_whole(line, "columns", columns);
}

static sb_tensor *run_softmax(const struct operation *o)
{
    return sb_softmax(o->x[0]);
}

static void *softmax_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(run_softmax);
    return operation_or_null(o, o && worker_matrix(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    operation_add_dy(o, SB_SHAPE(rows, columns)));
}

static sb_tensor *run_layer_norm(const struct operation *o)
{
    return sb_layer_norm(o->x[0], o->x[1], o->x[2], 0);
}

static void *layer_norm_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(run_layer_norm);
    return operation_or_null(o, o && worker_matrix(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    operation_add(o, "gain", SB_SHAPE(columns)) &&
                                    operation_add(o, "bias", SB_SHAPE(columns)) &&
                                    operation_add_dy(o, SB_SHAPE(rows, columns)));
}

static sb_tensor *run_cross_entropy(const struct operation *o)
{
    return sb_cross_entropy(o->x[0], o->ids, NULL);
}

static bool add_ids(struct operation *o, int64_t rows, int64_t columns)
{
    o->ids = sb_tensor_zeros(SB_I32, SB_SHAPE(rows));
    int32_t *id = o->ids ? sb_tensor_data(o->ids) : NULL;
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    for (int64_t i = 0; id && i < rows; i++)
        id[i] = (int32_t)sb_random_below(&random, (uint32_t)columns);
    return id != NULL;
}

static void *cross_entropy_open(const char *line)
{
    int64_t rows, columns;
    struct operation *o = operation_new(run_cross_entropy);
    return operation_or_null(o, o && worker_matrix(line, &rows, &columns) &&
                                    operation_add(o, "x", SB_SHAPE(rows, columns)) &&
                                    add_ids(o, rows, columns));
}

const struct job_kind job_attention = {"attention",     attention_open, operation_save,
                                       operation_check, operation_step, operation_close};
const struct job_kind job_softmax = {"softmax",       softmax_open,   operation_save,
                                     operation_check, operation_step, operation_close};
const struct job_kind job_layer_norm = {"layer_norm",    layer_norm_open, operation_save,
                                        operation_check, operation_step,  operation_close};
const struct job_kind job_cross_entropy = {"cross_entropy", cross_entropy_open, operation_save,
                                           operation_check, operation_step,     operation_close};
