#include "models/training/diagnosis.h"
#include "autograd/tape.h"
#include "ops/ops.h"
#include "tensor/mathematics.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>

static const double DEAF = 0.01;

int64_t diagnosis_first_head(const sb_transformer_options *o, int attention)
{
    const int layers = attention == 0   ? 0
                       : attention == 1 ? o->encoder_layers
                                        : o->encoder_layers + o->decoder_layers;
    return layers * o->heads;
}

/* All values of a tensor; NULL without memory. */
static double *values_of(const sb_tensor *t)
{
    double *values = memory_new((size_t)(tensor_size(t) + 1) * sizeof *values);
    if (values && sb_tensor_read(t, values))
        return values;
    memory_free(values);
    return NULL;
}

static bool is_deaf(int64_t n, const double *a)
{
    double squares = 0, cubes = 0;
    for (int64_t j = 0; j < n; j++) {
        squares += a[j] * a[j];
        cubes += a[j] * a[j] * a[j];
    }
    const double J2 = squares - 2 * cubes + squares * squares;
    return J2 * (double)n < DEAF * DEAF;
}

static double evenness(int64_t n, const double *a)
{
    double entropy = 0;
    for (int64_t j = 0; j < n; j++)
        entropy -= a[j] > 0 ? a[j] * math_log(a[j]) : 0;
    return entropy / math_log((double)n);
}

/* How many rows of a sentence count, and how many keys row i sees. */
struct extent {
    const double *queries, *keys; /* of each sentence */
    bool causal;
};

static int64_t keys_seen(const struct extent *e, int64_t b, int64_t i)
{
    const int64_t keys = (int64_t)e->keys[b];
    return e->causal && i + 1 < keys ? i + 1 : keys;
}

/* Of each head of one layer's weights (B, H, Lq, Lk). */
static bool take_weights(const sb_tensor *weights, const struct extent *e, double *deaf,
                         double *even)
{
    const int64_t B = weights->dim[0], H = weights->dim[1], Lq = weights->dim[2],
                  Lk = weights->dim[3];
    double *a = values_of(weights);
    for (int64_t h = 0; a && h < H; h++) {
        int64_t rows = 0;
        for (int64_t b = 0; b < B; b++)
            for (int64_t i = 0; i < (int64_t)e->queries[b]; i++) {
                const int64_t n = keys_seen(e, b, i);
                const double *row = a + ((b * H + h) * Lq + i) * Lk;
                if (n < 2)
                    continue;
                deaf[h] += is_deaf(n, row);
                even[h] += evenness(n, row);
                rows++;
            }
        deaf[h] /= rows > 0 ? (double)rows : 1;
        even[h] /= rows > 0 ? (double)rows : 1;
    }
    memory_free(a);
    return a != NULL || sb_fail("diagnosis: out of memory");
}

static bool take_heads(struct diagnosis *d, const sb_transformer_options *o,
                       sb_tensor *const weights[], const sb_batch *batch)
{
    double *source = values_of(sb_batch_get(batch, "source_lengths")),
           *target = values_of(sb_batch_get(batch, "target_lengths"));
    bool ok = (source && target) || sb_fail("diagnosis: out of memory");
    const struct extent extents[] = {
        {source, source, false}, {target, target, true}, {target, source, false}};
    const int layers[] = {o->encoder_layers, o->decoder_layers, o->decoder_layers};
    for (int kind = 0, n = 0; kind < 3; kind++)
        for (int layer = 0; layer < layers[kind]; layer++, n++)
            ok = ok && take_weights(weights[n], &extents[kind], d->deaf + n * o->heads,
                                    d->evenness + n * o->heads);
    memory_free(source);
    memory_free(target);
    return ok;
}

static bool take_gradients(struct diagnosis *d, const sb_parameters *set)
{
    for (int64_t i = 0; i < d->parameters; i++) {
        const sb_tensor *gradient = sb_grad(sb_parameters_get(set, i));
        double sum = 0, *values = gradient ? values_of(gradient) : NULL;
        if (gradient && !values)
            return sb_fail("diagnosis: out of memory");
        for (int64_t e = 0; values && e < tensor_size(gradient); e++)
            sum += values[e] * values[e];
        d->gradient[i] = sqrt(sum);
        memory_free(values);
    }
    return true;
}

static bool open_diagnosis(struct diagnosis *d, const sb_seq2seq *model)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    *d = (struct diagnosis){.parameters = sb_parameters_count(sb_seq2seq_parameters(model)),
                            .heads = diagnosis_first_head(o, 2) + o->decoder_layers * o->heads};
    d->gradient = memory_new((size_t)d->parameters * sizeof(double));
    d->deaf = memory_new((size_t)d->heads * sizeof(double));
    d->evenness = memory_new((size_t)d->heads * sizeof(double));
    return (d->gradient && d->deaf && d->evenness) || sb_fail("diagnosis: out of memory");
}

bool diagnosis_make(struct diagnosis *d, const sb_seq2seq *model, const sb_batch *batch)
{
    const sb_transformer_options *o = &sb_seq2seq_options_of(model)->transformer;
    const int layers = o->encoder_layers + 2 * o->decoder_layers;
    sb_tensor **all = memory_new((size_t)layers * sizeof *all);
    bool ok = open_diagnosis(d, model) && (all || sb_fail("diagnosis: out of memory"));
    if (ok) {
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tape_random(&tape, NULL);
        sb_tensor **self = all + o->encoder_layers, **cross = self + o->decoder_layers;
        const sb_seq2seq_weights weights = {all, {self, cross}};
        sb_tensor *logits = sb_seq2seq_logits(model, batch, &weights);
        sb_tensor *loss =
            logits ? sb_cross_entropy(logits, sb_batch_get(batch, "target_out"), NULL) : NULL;
        ok = loss && take_heads(d, o, all, batch) && sb_backward(loss) &&
             take_gradients(d, sb_seq2seq_parameters(model));
        ok = sb_tape_end(&tape) && ok;
        sb_parameters_clear(sb_seq2seq_parameters(model));
    }
    memory_free(all);
    if (!ok)
        diagnosis_free(d);
    return ok;
}

void diagnosis_free(struct diagnosis *d)
{
    memory_free(d->gradient);
    memory_free(d->deaf);
    memory_free(d->evenness);
    *d = (struct diagnosis){0};
}
