#include "models/training/diagnosis.h"
#include "autograd/tape.h"
#include "ops/ops.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

static const double SATURATED_BELOW = 0.01;

/* All values of a tensor; NULL without memory. */
static double *diagnosis_values_of(const sb_tensor *t)
{
    double *values = memory_new((size_t)(tensor_size(t) + 1) * sizeof *values);
    if (values && sb_tensor_read(t, values))
        return values;
    memory_free(values);
    return NULL;
}

static bool diagnosis_is_saturated(int64_t n, const double *a)
{
    double squares = 0, cubes = 0;
    for (int64_t j = 0; j < n; j++) {
        squares += a[j] * a[j];
        cubes += a[j] * a[j] * a[j];
    }
    return squares - 2 * cubes + squares * squares < SATURATED_BELOW * SATURATED_BELOW;
}

static double diagnosis_evenness(int64_t n, const double *a)
{
    double entropy = 0;
    for (int64_t j = 0; j < n; j++)
        entropy -= a[j] > 0 ? a[j] * math_log(a[j]) : 0;
    return entropy / math_log((double)n);
}

/* The number of rows and keys of each sentence. */
struct extent {
    const double *queries, *keys; /* of each sentence */
    bool causal;
};

static int64_t diagnosis_keys_of_row(const struct extent *e, int64_t b, int64_t i)
{
    const int64_t keys = (int64_t)e->keys[b];
    return e->causal && i + 1 < keys ? i + 1 : keys;
}

/* Measures each head of one layer's weights (B, H, Lq, Lk). */
static bool diagnosis_take_weights(const sb_tensor *weights, const struct extent *e,
                                   double *saturated, double *even)
{
    const int64_t B = weights->dim[0], H = weights->dim[1], Lq = weights->dim[2],
                  Lk = weights->dim[3];
    double *a = diagnosis_values_of(weights);
    for (int64_t h = 0; a && h < H; h++) {
        int64_t rows = 0;
        for (int64_t b = 0; b < B; b++)
            for (int64_t i = 0; i < (int64_t)e->queries[b]; i++) {
                const int64_t n = diagnosis_keys_of_row(e, b, i);
                const double *row = a + ((b * H + h) * Lq + i) * Lk;
                if (n < 2)
                    continue;
                saturated[h] += diagnosis_is_saturated(n, row);
                even[h] += diagnosis_evenness(n, row);
                rows++;
            }
        saturated[h] /= rows > 0 ? (double)rows : 1;
        even[h] /= rows > 0 ? (double)rows : 1;
    }
    memory_free(a);
    return a != NULL || sb_fail("diagnosis: out of memory");
}

/* Measures the next heads, those of one map. */
static bool diagnosis_take_map(struct diagnosis *d, const sb_attention_map *map, int64_t *head)
{
    double *queries = diagnosis_values_of(map->queries), *keys = diagnosis_values_of(map->keys);
    const struct extent extent = {queries, keys, map->causal};
    const bool ok = (queries && keys) || sb_fail("diagnosis: out of memory");
    const bool taken = ok && diagnosis_take_weights(map->weights, &extent, d->saturated + *head,
                                                    d->evenness + *head);
    *head += map->weights->dim[1];
    memory_free(queries);
    memory_free(keys);
    return taken;
}

/* Counts them first. */
bool diagnosis_make_heads(struct diagnosis *d, const sb_attentions *a)
{
    int64_t head = 0;
    for (int i = 0; i < a->maps; i++)
        d->heads += a->map[i].weights->dim[1];
    d->saturated = memory_new((size_t)(d->heads + 1) * sizeof(double));
    d->evenness = memory_new((size_t)(d->heads + 1) * sizeof(double));
    bool ok = (d->saturated && d->evenness) || sb_fail("diagnosis: out of memory");
    for (int i = 0; ok && i < a->maps; i++)
        ok = diagnosis_take_map(d, &a->map[i], &head);
    return ok;
}

static int diagnosis_bin(double x)
{
    static const double from[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    int bin = 1;
    while (bin < DIAGNOSIS_BINS - 1 && fabs(x) >= from[bin - 1])
        bin++;
    return x == 0 ? 0 : bin;
}

/* The norm of a gradient, whose elements are counted in `histogram`. */
static double diagnosis_norm(int64_t n, const double *x, int64_t *histogram)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
        if (!isnan(x[i]))
            histogram[diagnosis_bin(x[i])]++;
    }
    return sqrt(sum);
}

static bool diagnosis_take_gradients(struct diagnosis *d, const sb_parameters *set)
{
    for (int64_t i = 0; i < d->parameters; i++) {
        const sb_tensor *gradient = sb_tensor_grad(sb_parameters_get(set, i));
        double *values = gradient ? diagnosis_values_of(gradient) : NULL;
        if (gradient && !values)
            return sb_fail("diagnosis: out of memory");
        if (values)
            d->gradient[i] =
                diagnosis_norm(tensor_size(gradient), values, d->histogram + i * DIAGNOSIS_BINS);
        memory_free(values);
    }
    return true;
}

/* On the open tape. */
static bool diagnosis_diagnose(struct diagnosis *d, const sb_model *model, const sb_batch *batch)
{
    sb_attentions a;
    if (!model->kind->attentions)
        return sb_fail("diagnosis: the kind \"%s\" has no `attentions`", model->kind->name);
    if (!model->kind->attentions(model->self, batch, &a))
        return false;
    const bool ok = diagnosis_make_heads(d, &a) && sb_backward(a.loss) &&
                    diagnosis_take_gradients(d, model->weights);
    sb_free(a.map);
    return ok;
}

bool diagnosis_make(struct diagnosis *d, const sb_model *model, const sb_batch *batch)
{
    *d = (struct diagnosis){.parameters = sb_parameters_count(model->weights)};
    d->gradient = memory_new((size_t)(d->parameters + 1) * sizeof(double));
    d->histogram = memory_new((size_t)(d->parameters + 1) * DIAGNOSIS_BINS * sizeof(int64_t));
    bool ok = (d->gradient && d->histogram) || sb_fail("diagnosis: out of memory");
    if (ok) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tape_random(&tape, NULL);
        ok = diagnosis_diagnose(d, model, batch);
        ok = sb_tape_end(&tape) && ok;
        sb_parameters_clear(model->weights);
    }
    if (!ok)
        diagnosis_free(d);
    return ok;
}

void diagnosis_free(struct diagnosis *d)
{
    memory_free(d->gradient);
    memory_free(d->histogram);
    memory_free(d->saturated);
    memory_free(d->evenness);
    *d = (struct diagnosis){0};
}
