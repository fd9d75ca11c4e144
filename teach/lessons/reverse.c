#include "teach/lessons/reverse.h"
#include "autograd/operation.h"
#include "autograd/tape.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/optimiser.h"
#include "ops/ops.h"
#include <math.h>

enum {
    SYMBOLS = REVERSE_SYMBOLS,
    L = REVERSE_LENGTH,
    B = 16,
    C = 32,
    HIDDEN = 64,
    EARLY = 100,
    MEAN_OF = 20
};

/* ---- The operation: a = softmax(s) over the last axis, with the given backward. ---- */

/* The size of the mean of a row's scores, summed over rows. */
struct shift {
    double sum;
    int64_t rows;
};

static bool softmax_op_backward(sb_node *node)
{
    reverse_gradient *const *gradient = sb_node_options(node);
    const float *a = sb_tensor_data(sb_node_result(node, 0));
    const float *g = sb_tensor_data(sb_node_dy(node, 0));
    sb_tensor *dx = sb_node_dx(node, 0);
    float *to = dx ? sb_tensor_data(dx) : NULL;
    for (int64_t r = 0; to && r < sb_tensor_size(dx) / L; r++) {
        float ds[L] = {0};
        (*gradient)(L, a + r * L, g + r * L, ds);
        for (int i = 0; i < L; i++)
            to[r * L + i] += ds[i];
    }
    return true;
}

static const sb_operation softmax_operation = {
    .name = "your softmax", .inputs = "scores", .backward = softmax_op_backward};

static sb_tensor *softmax_op(sb_tensor *scores, reverse_gradient *gradient, struct shift *shift)
{
    sb_node *node = sb_node_new(&softmax_operation, 1, &scores, 1, &gradient, sizeof gradient);
    sb_tensor *y = node ? sb_node_output(node, SB_F32, 3, (const int64_t[]){B, L, L}) : NULL;
    const float *s = y ? sb_tensor_data(scores) : NULL;
    float *a = s ? sb_tensor_data(y) : NULL;
    for (int64_t r = 0; a && r < B * L; r++, s += L, a += L) {
        float max = s[0], sum = 0, all = 0;
        for (int i = 0; i < L; i++)
            all += s[i];
        shift->sum += (double)fabsf(all / L);
        shift->rows++;
        for (int i = 1; i < L; i++)
            max = fmaxf(max, s[i]);
        for (int i = 0; i < L; i++)
            sum += a[i] = expf(s[i] - max);
        for (int i = 0; i < L; i++)
            a[i] /= sum;
    }
    return y;
}

/* ---- The model: a layer of self-attention, a layer that attends to it, and nothing else. ---- */

struct attending {
    sb_norm_layer norm;
    sb_linear_layer query, key, value, output;
    sb_norm_layer second_norm;
    sb_linear_layer wide, narrow;
};

struct model {
    sb_parameters *weights;
    sb_optimiser *adam;
    sb_tensor *symbols, *places, *questions; /* embeddings; positions: in and out */
    struct attending encoder, decoder;
    sb_linear_layer output;
    reverse_gradient *gradient;
    struct shift shift;
};

static bool linear_init(sb_linear_layer *layer, sb_parameters *set, const char *name, int n,
                        int64_t in, int64_t out)
{
    const char path[] = {name[0], (char)('0' + n), 0};
    return sb_linear_layer_init(layer, set, path, in, out, true);
}

static bool attending_init(struct attending *a, sb_parameters *set, const char *name)
{
    const char first[] = {name[0], 'a', 0}, second[] = {name[0], 'b', 0};
    return sb_norm_layer_init(&a->norm, set, first, C, SB_NORM_KIND_LAYER) &&
           sb_norm_layer_init(&a->second_norm, set, second, C, SB_NORM_KIND_LAYER) &&
           linear_init(&a->query, set, name, 1, C, C) && linear_init(&a->key, set, name, 2, C, C) &&
           linear_init(&a->value, set, name, 3, C, C) &&
           linear_init(&a->output, set, name, 4, C, C) &&
           linear_init(&a->wide, set, name, 5, C, HIDDEN) &&
           linear_init(&a->narrow, set, name, 6, HIDDEN, C);
}

static bool model_init(struct model *m, reverse_gradient *gradient, uint64_t seed, int steps)
{
    const sb_optimiser_options options = {.schedule = {.kind = SB_SCHEDULE_COSINE,
                                                       .rate = 0.003,
                                                       .warmup = steps > 100 ? 50 : steps / 2,
                                                       .steps = steps}};
    const sb_initial normal = {SB_INITIAL_NORMAL, 0.3};
    m->gradient = gradient;
    m->weights = sb_parameters_new(seed);
    if (!m->weights)
        return false;
    m->symbols = sb_parameters_add(m->weights, "symbols", SB_SHAPE(SYMBOLS, C), normal);
    m->places = sb_parameters_add(m->weights, "places", SB_SHAPE(L, C), normal);
    m->questions = sb_parameters_add(m->weights, "questions", SB_SHAPE(L, C), normal);
    m->adam = sb_adam_new(m->weights, &options);
    return m->symbols && m->places && m->questions && m->adam &&
           attending_init(&m->encoder, m->weights, "e") &&
           attending_init(&m->decoder, m->weights, "d") &&
           sb_linear_layer_init(&m->output, m->weights, "output", C, SYMBOLS, true);
}

static sb_tensor *linear(const sb_linear_layer *layer, sb_tensor *x)
{
    return sb_linear_layer_forward(layer, x, SB_ACTIVATION_IDENTITY);
}

/* x + attention(norm x, memory), and then x + feed_forward(norm x). */
static sb_tensor *attend(struct model *m, const struct attending *a, sb_tensor *x,
                         sb_tensor *memory)
{
    sb_tensor *h = sb_norm_layer_forward(&a->norm, x);
    sb_tensor *from = memory ? memory : h;
    sb_tensor *q = linear(&a->query, h), *k = linear(&a->key, from), *v = linear(&a->value, from);
    sb_tensor *scores = sb_scale(sb_matmul_nt(q, k), 1 / sqrt(C));
    sb_tensor *seen = sb_matmul(softmax_op(scores, m->gradient, &m->shift), v);
    x = sb_add(x, linear(&a->output, seen));
    h = sb_linear_layer_forward(&a->wide, sb_norm_layer_forward(&a->second_norm, x),
                                SB_ACTIVATION_RELU);
    return sb_add(x, linear(&a->narrow, h));
}

/* ids (B, L) -> logits (B, L, SYMBOLS), the decoder queries all positions in one pass. */
static sb_tensor *logits(struct model *m, sb_tensor *ids)
{
    const int64_t all[] = {B, L, C};
    sb_tensor *x = sb_add(sb_embedding(m->symbols, ids), m->places);
    sb_tensor *memory = attend(m, &m->encoder, x, NULL);
    sb_tensor *y = attend(m, &m->decoder, sb_expand(m->questions, 3, all), memory);
    return linear(&m->output, y);
}

/* ---- Training and evaluation ---- */

static bool draw(sb_random *random, sb_tensor **ids, sb_tensor **reversed)
{
    int32_t in[B * L], out[B * L];
    for (int i = 0; i < B * L; i++) {
        in[i] = (int32_t)sb_random_below(random, SYMBOLS);
        out[i / L * L + L - 1 - i % L] = in[i];
    }
    *ids = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), in));
    *reversed = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), out));
    return *ids && *reversed;
}

static bool train_step(struct model *m, sb_random *random, double *loss)
{
    sb_tape tape;
    sb_tensor *ids, *reversed;
    sb_tape_begin(&tape, SB_RECORD);
    bool ok = draw(random, &ids, &reversed);
    sb_tensor *y = ok ? sb_cross_entropy(logits(m, ids), reversed, NULL) : NULL;
    *loss = y ? sb_tensor_value(y) : NAN;
    ok = y && sb_backward(y) && sb_optimiser_step(m->adam);
    return sb_tape_end(&tape) && ok;
}

static bool evaluate(struct model *m, struct reverse_result *result)
{
    sb_random random = sb_random_new(12345, SB_STREAM_USER);
    int64_t right = 0, all = 0;
    bool ok = true;
    m->shift = (struct shift){0};
    for (int batch = 0; ok && batch < 256 / B; batch++) {
        sb_tape tape;
        sb_tensor *ids, *reversed;
        sb_tape_begin(&tape, SB_NO_RECORD);
        ok = draw(&random, &ids, &reversed);
        sb_tensor *best = ok ? sb_argmax(logits(m, ids), -1) : NULL;
        for (int64_t i = 0; best && i < B * L; i++, all++)
            right += sb_tensor_get(best, i) == sb_tensor_get(reversed, i);
        ok = sb_tape_end(&tape) && best;
    }
    result->accuracy = all ? (double)right / (double)all : 0;
    result->shift = m->shift.sum / (double)(m->shift.rows + !m->shift.rows);
    return ok;
}

/* The mean over the last steps up to `end`. */
static void add_to_mean(double *mean, double loss, int step, int end)
{
    const int some = end < MEAN_OF ? end : MEAN_OF;
    if (step > end - some && step <= end)
        *mean += loss / some;
}

bool reverse_train(reverse_gradient *gradient, uint64_t seed, int steps,
                   struct reverse_result *result)
{
    struct model m = {0};
    sb_random random = sb_random_new(seed, SB_STREAM_USER);
    bool ok = model_init(&m, gradient, seed, steps);
    *result = (struct reverse_result){0};
    sb_set_threads(1); /* so small a model is slower with more */
    for (int step = 1; ok && step <= steps; step++) {
        double loss;
        ok = train_step(&m, &random, &loss);
        result->first = step == 1 ? loss : result->first;
        add_to_mean(&result->early, loss, step, steps < EARLY ? steps : EARLY);
        add_to_mean(&result->last, loss, step, steps);
    }
    ok = ok && evaluate(&m, result);
    sb_optimiser_free(m.adam);
    sb_parameters_free(m.weights);
    return ok;
}
