/* Whether decoder_block is a causal pre-norm block, and whether two of them learn to repeat. */
#include "lesson.h"
#include <math.h>

enum { B = 16, L = 16, C = 32, HIDDEN = 64, SYMBOLS = 12, BLOCKS = 2, STEPS = 100, PERIOD = 8 };

struct model {
    sb_parameters *weights;
    sb_tensor *symbols, *places;
    struct decoder_layers block[BLOCKS];
    sb_linear_layer output;
};

static bool block_init(struct decoder_layers *l, sb_parameters *set, int n)
{
    const char names[][4] = {{'a', (char)('0' + n), 0}, {'f', (char)('0' + n), 0},
                             {'q', (char)('0' + n), 0}, {'k', (char)('0' + n), 0},
                             {'v', (char)('0' + n), 0}, {'o', (char)('0' + n), 0},
                             {'w', (char)('0' + n), 0}, {'n', (char)('0' + n), 0}};
    return sb_norm_layer_init(&l->attention_norm, set, names[0], C, SB_NORM_KIND_LAYER) &&
           sb_norm_layer_init(&l->forward_norm, set, names[1], C, SB_NORM_KIND_LAYER) &&
           sb_linear_layer_init(&l->query, set, names[2], C, C, true) &&
           sb_linear_layer_init(&l->key, set, names[3], C, C, true) &&
           sb_linear_layer_init(&l->value, set, names[4], C, C, true) &&
           sb_linear_layer_init(&l->output, set, names[5], C, C, true) &&
           sb_linear_layer_init(&l->wide, set, names[6], C, HIDDEN, true) &&
           sb_linear_layer_init(&l->narrow, set, names[7], HIDDEN, C, true);
}

static bool model_init(struct model *m)
{
    const sb_initial normal = {SB_INITIAL_NORMAL, 0.3};
    m->weights = sb_parameters_new(1);
    bool ok = m->weights != NULL;
    m->symbols = ok ? sb_parameters_add(m->weights, "symbols", SB_SHAPE(SYMBOLS, C), normal) : NULL;
    m->places = ok ? sb_parameters_add(m->weights, "places", SB_SHAPE(L, C), normal) : NULL;
    for (int n = 0; ok && n < BLOCKS; n++)
        ok = block_init(&m->block[n], m->weights, n);
    return ok && sb_linear_layer_init(&m->output, m->weights, "output", C, SYMBOLS, true);
}

/* ---- One block ---- */

static sb_tensor *linear(const sb_linear_layer *layer, sb_tensor *x)
{
    return sb_linear_layer_forward(layer, x, SB_ACTIVATION_IDENTITY);
}

/* What a block may lack. */
struct lacks {
    bool mask, residual, norm, second_norm, relu;
};

static sb_tensor *reference(const struct decoder_layers *l, sb_tensor *x, struct lacks lacks)
{
    const sb_attention_options options = {.mask = lacks.mask ? NULL : sb_mask_causal()};
    sb_tensor *h = sb_norm_layer_forward(&l->attention_norm, x);
    sb_tensor *y =
        sb_attention(linear(&l->query, h), linear(&l->key, h), linear(&l->value, h), &options);
    x = sb_add(x, linear(&l->output, y));
    const sb_norm_layer *norm = lacks.second_norm ? &l->attention_norm : &l->forward_norm;
    h = lacks.norm ? x : sb_norm_layer_forward(norm, x);
    h = sb_linear_layer_forward(&l->wide, h,
                                lacks.relu ? SB_ACTIVATION_IDENTITY : SB_ACTIVATION_RELU);
    h = linear(&l->narrow, h);
    return lacks.residual ? h : sb_add(x, h);
}

static bool alike(sb_tensor *a, sb_tensor *b)
{
    double most = a && b ? 0 : 1;
    for (int64_t i = 0; a && b && i < sb_tensor_size(b); i++)
        most = fmax(most, fabs(sb_tensor_get(a, i) - sb_tensor_get(b, i)));
    return most < 1e-5;
}

static sb_tensor *random_input(int seed)
{
    sb_random random = sb_random_new((uint64_t)seed, SB_STREAM_USER);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F32, 3, (const int64_t[]){1, L, C}));
    for (int64_t i = 0; i < L * C; i++)
        sb_tensor_set(x, i, sb_random_normal(&random));
    return x;
}

/* The first position whose output moves when the last input does. */
static int first_moved(const struct decoder_layers *l)
{
    sb_tensor *x = random_input(1), *moved = random_input(1);
    for (int64_t c = 0; c < C; c++)
        sb_tensor_set(moved, (L - 1) * C + c, 3 + (double)c);
    sb_tensor *before = decoder_block(l, x), *after = decoder_block(l, moved);
    for (int64_t i = 0; before && after && i < L * C; i++)
        if (sb_tensor_get(before, i) != sb_tensor_get(after, i))
            return (int)(i / C);
    return L;
}

/* Other weights for the first test: at first all norms are equal, and all biases 0. */
static void move_weights(const sb_parameters *set)
{
    sb_random random = sb_random_new(3, SB_STREAM_USER);
    for (int64_t p = 0; p < sb_parameters_count(set); p++) {
        sb_tensor *weight = sb_parameters_get(set, p);
        for (int64_t i = 0; i < sb_tensor_size(weight); i++)
            sb_tensor_set(weight, i, sb_tensor_get(weight, i) + 0.2 * sb_random_normal(&random));
    }
}

static void test_block(const struct decoder_layers *l)
{
    static const struct {
        struct lacks lacks;
        const char *name;
    } known[] = {
        {{.mask = true}, "there is no causal mask: sb_attention takes it in its options"},
        {{.residual = true},
         "a residual connection is missing: add x, and to that the feed-forward "
         "layer"},
        {{.norm = true}, "the feed-forward layer gets its input without the norm"},
        {{.second_norm = true},
         "one norm is used twice: the feed-forward layer has a norm of its own, forward_norm"},
        {{.relu = true},
         "the feed-forward layer is without relu: two linear maps in a row are one"},
    };
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const int moved = first_moved(l);
    if (!holds(moved == L - 1,
               "a change of the last symbol moves the last output, and none before"))
        hint(moved == L ? "nothing moves: is x of this block used at all?"
                        : "position %d moves: it sees what comes after it",
             moved);
    sb_tensor *x = random_input(2), *y = decoder_block(l, x);
    if (!holds(alike(y, reference(l, x, (struct lacks){0})), "it is a pre-norm block"))
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (alike(y, reference(l, x, known[i].lacks)))
                hint("%s", known[i].name);
    if (!sb_tape_end(&tape))
        say("%s", sb_error());
}

/* ---- Two blocks that learn ---- */

static sb_tensor *logits(const struct model *m, sb_tensor *ids)
{
    sb_tensor *x = sb_add(sb_embedding(m->symbols, ids), m->places);
    for (int n = 0; n < BLOCKS; n++)
        x = decoder_block(&m->block[n], x);
    return linear(&m->output, x);
}

/* Texts whose second half repeats the first; target: the next symbol, where it can be known. */
static bool draw(sb_random *random, sb_tensor **ids, sb_tensor **next)
{
    int32_t text[B * (L + 1)], in[B * L], out[B * L];
    for (int i = 0; i < B * (L + 1); i++) {
        const int place = i % (L + 1);
        text[i] = place < PERIOD ? (int32_t)sb_random_below(random, SYMBOLS) : text[i - PERIOD];
    }
    for (int i = 0; i < B * L; i++) {
        const int32_t *at = text + i / L * (L + 1) + i % L;
        in[i] = at[0];
        out[i] = i % L >= PERIOD - 1 ? at[1] : -1;
    }
    *ids = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), in));
    *next = sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B, L), out));
    return *ids && *next;
}

static bool train_blocks(struct model *m, sb_random *random, double *loss)
{
    const sb_optimiser_options rate = {
        .schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 0.01, .warmup = 20, .steps = STEPS},
        .clip = 1};
    sb_optimiser *adam = sb_adam_new(m->weights, &rate);
    bool ok = adam != NULL;
    for (int step = 1; ok && step <= STEPS; step++) {
        sb_tensor *ids, *next;
        sb_tape tape;
        sb_tape_begin(&tape, SB_RECORD);
        sb_tensor *y = draw(random, &ids, &next) ? logits(m, ids) : NULL;
        sb_tensor *mean = y ? sb_cross_entropy(y, next, NULL) : NULL;
        *loss = mean ? sb_tensor_value(mean) : NAN;
        ok = sb_backward(mean) && sb_optimiser_step(adam);
        ok = sb_tape_end(&tape) && ok;
        if (step % 25 == 0)
            say("step %d  loss %.3f", step, *loss);
    }
    sb_optimiser_free(adam);
    return ok;
}

/* The share of repeated symbols that are predicted right, and its standard error over sequences. */
static double share_right(const struct model *m, sb_random *random, double *error)
{
    sb_tensor *ids, *next;
    double sum = 0, squares = 0;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *best = draw(random, &ids, &next) ? sb_argmax(logits(m, ids), -1) : NULL;
    for (int64_t b = 0; best && b < B; b++) {
        double right = 0, all = 0;
        for (int64_t i = b * L; i < (b + 1) * L; i++)
            if (sb_tensor_get(next, i) >= 0) {
                right += sb_tensor_get(best, i) == sb_tensor_get(next, i);
                all++;
            }
        sum += right / all;
        squares += right / all * (right / all);
    }
    sb_tape_end(&tape);
    *error = sqrt(fmax(squares - sum * sum / B, 0) / (B - 1) / B);
    return sum / B;
}

int main(void)
{
    struct model m = {0}, tested = {0};
    double loss = NAN;
    sb_random random = sb_random_new(7, SB_STREAM_USER);
    sb_set_threads(1);
    if (!model_init(&m) || !model_init(&tested))
        say("%s", sb_error());
    move_weights(tested.weights);
    test_block(&tested.block[0]);
    sb_parameters_free(tested.weights);
    blank_line();
    say("Two blocks learn to repeat %d symbols of %d; guessing has a loss of ln %d = %.2f.", PERIOD,
        SYMBOLS, SYMBOLS, log(SYMBOLS));
    if (!train_blocks(&m, &random, &loss))
        say("training failed: %s", sb_error());
    double error = 0;
    const double right = share_right(&m, &random, &error);
    holds(right >= 0.95,
          "%.1f +- %.1f %% of the repeated symbols of %d sequences are predicted right",
          100 * right, 100 * error, B);
    sb_parameters_free(m.weights);
    return lesson_end();
}
