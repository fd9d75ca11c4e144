#include "tests/support/variant.h"
#include "tests/support/mailbox.h"

static bool one_in(sb_random *random, uint32_t n)
{
    return sb_random_below(random, n) == 0;
}

struct variant variant_draw(uint64_t seed)
{
    sb_random r = sb_random_new(seed, SB_STREAM_USER);
    struct variant c = {.seed = seed, .B = 1 + sb_random_below(&r, 3)};
    c.G = 1 + sb_random_below(&r, 2);
    c.H = c.G * (1 + sb_random_below(&r, 2));
    c.Lq = 1 + sb_random_below(&r, 7);
    c.Lk = 1 + sb_random_below(&r, 9);
    c.D = 1 + sb_random_below(&r, 5);
    c.Dv = 1 + sb_random_below(&r, 4);
    c.layout = one_in(&r, 2) ? SB_LAYOUT_LENGTH_FIRST : SB_LAYOUT_HEADS_FIRST;
    c.score = sb_random_below(&r, 3);
    c.scale = one_in(&r, 3) ? 0.8 : 0;
    c.mask = (int)sb_random_below(&r, MASK_KINDS);
    c.bias = (int)sb_random_below(&r, BIAS_KINDS);
    c.temperature = (int)sb_random_below(&r, TEMPERATURE_KINDS);
    if (one_in(&r, 3)) { /* rows of weights are rounded up to eight for dropout's bits */
        c.dropout = 0.3;
        c.Lk = 8 * (1 + sb_random_below(&r, 2));
    }
    return c;
}

static sb_tensor *operand(const struct variant *c, sb_dtype dtype, uint64_t seed, int64_t L,
                          int64_t H, int64_t D)
{
    int64_t dim[4] = {c->B, L, H, D};
    if (c->layout == SB_LAYOUT_HEADS_FIRST) {
        dim[1] = H;
        dim[2] = L;
    }
    return test_leaf(dtype, 100 * c->seed + seed, 4, dim);
}

static sb_tensor *bias(const struct variant *c, sb_dtype dtype)
{
    uint64_t seed = 100 * c->seed + 4;
    switch (c->bias) {
    case BIAS_ALL:
        return test_leaf(dtype, seed, SB_SHAPE(c->B, c->H, c->Lq, c->Lk));
    case BIAS_HEADS:
        return test_leaf(dtype, seed, SB_SHAPE(c->H, c->Lq, c->Lk));
    case BIAS_KEYS:
        return test_leaf(dtype, seed, SB_SHAPE(c->Lk));
    case BIAS_BATCH:
        return test_leaf(dtype, seed, SB_SHAPE(c->B, 1, 1, c->Lk));
    case BIAS_QUERIES:
        return test_leaf(dtype, seed, SB_SHAPE(1, c->Lq, 1));
    case BIAS_ONE:
        return test_leaf(dtype, seed, SB_SCALAR);
    default:
        return NULL;
    }
}

void variant_inputs(const struct variant *c, sb_dtype dtype, sb_tensor *x[VARIANT_INPUTS])
{
    x[0] = operand(c, dtype, 1, c->Lq, c->H, c->D);
    x[1] = operand(c, dtype, 2, c->Lk, c->G, c->D);
    x[2] = operand(c, dtype, 3, c->Lk, c->G, c->Dv);
    x[3] = bias(c, dtype);
    x[4] = NULL;
    if (c->temperature == TEMPERATURE_ONE)
        x[4] = test_leaf(dtype, c->seed + 5, SB_SCALAR);
    if (c->temperature == TEMPERATURE_HEADS)
        x[4] = test_leaf(dtype, c->seed + 5, SB_SHAPE(c->H));
}

static sb_mask *padding(const struct variant *c)
{
    sb_random r = sb_random_new(c->seed, SB_STREAM_DATA);
    sb_tensor *lengths = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(c->B)));
    for (int64_t b = 0; b < c->B; b++)
        sb_tensor_set(lengths, b, sb_random_below(&r, (uint32_t)c->Lk + 1));
    return sb_mask_lengths(lengths);
}

static void draw_flags(sb_random *r, double likely, sb_tensor *flags)
{
    double *flag = numbers_of(flags);
    for (int64_t i = 0; i < sb_tensor_size(flags); i++)
        flag[i] = sb_random_uniform(r) < likely;
    sb_tensor_write(flags, flag);
}

static sb_mask *pairs(const struct variant *c)
{
    sb_random r = sb_random_new(c->seed, SB_STREAM_SAMPLE);
    sb_tensor *allowed = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(c->B, 1, c->Lq, c->Lk)));
    draw_flags(&r, 0.6, allowed);
    if (c->rows.of)
        allowed = share_part(allowed, 2, &c->rows, c->rows_here);
    return sb_mask_allow(allowed);
}

/* Blocks of three queries and keys; large ones where there are many pairs. */
static sb_mask *blocks(const struct variant *c)
{
    sb_random r = sb_random_new(c->seed, SB_STREAM_SAMPLE);
    int64_t size = c->Lq * c->Lk < 1000 ? 3 : 50;
    sb_tensor *kept = sb_tape_own(sb_tensor_zeros(
        SB_BOOL, SB_SHAPE(c->H, (c->Lq + size - 1) / size, (c->Lk + size - 1) / size)));
    draw_flags(&r, 0.5, kept);
    return sb_mask_blocks(kept, size);
}

static sb_mask *mask(const struct variant *c)
{
    sb_mask *first = NULL;
    switch (c->mask) {
    case MASK_CAUSAL:
        return sb_mask_causal();
    case MASK_CAUSAL_LAST:
        return sb_mask_causal_last();
    case MASK_PADDING:
        return padding(c);
    case MASK_NEAR:
        return sb_mask_window(2, 1);
    case MASK_WIDE:
        return sb_mask_window(70, 80);
    case MASK_PAIRS:
        return pairs(c);
    case MASK_PADDING_AND_CAUSAL:
        first = padding(c);
        return sb_mask_and(first, sb_mask_causal());
    case MASK_PAIRS_AND_PADDING:
        first = padding(c);
        return sb_mask_and(first, pairs(c));
    case MASK_SPARSE:
        return blocks(c);
    case MASK_SPARSE_AND_CAUSAL:
        first = blocks(c);
        return sb_mask_and(first, sb_mask_causal());
    default:
        return NULL;
    }
}

/* (B, L, G, D) as (B, H, L, D): each key head is repeated for its query heads. */
static sb_tensor *heads(const struct variant *c, sb_tensor *x)
{
    if (c->layout == SB_LAYOUT_LENGTH_FIRST)
        x = sb_permute(x, 4, (const int[]){0, 2, 1, 3});
    int64_t G = sb_tensor_dim(x, 1), L = sb_tensor_dim(x, 2), D = sb_tensor_dim(x, 3);
    x = sb_reshape(x, SB_SHAPE(c->B, G, 1, L, D));
    x = sb_expand(x, SB_SHAPE(c->B, G, c->H / G, L, D));
    return sb_reshape(x, SB_SHAPE(c->B, c->H, L, D));
}

static double scale_of(const struct variant *c)
{
    double scale = c->scale ? c->scale : c->score == SB_SCORE_COSINE ? 1 : 1 / sqrt((double)c->D);
    return c->temperature == TEMPERATURE_FIXED ? scale / 0.7 : scale;
}

static sb_tensor *compose(const struct variant *c, sb_tensor *const x[], sb_tensor **weights)
{
    sb_tensor *q = heads(c, x[0]), *k = heads(c, x[1]), *v = heads(c, x[2]);
    if (c->score == SB_SCORE_COSINE) {
        q = sb_l2_normalize(q);
        k = sb_l2_normalize(k);
    }
    sb_tensor *s = sb_scale(sb_matmul_nt(q, k), scale_of(c));
    if (x[4]) {
        sb_tensor *T = sb_exp(x[4]);
        s = sb_divide(s, sb_tensor_rank(T) ? sb_reshape(T, SB_SHAPE(c->H, 1, 1)) : T);
    }
    if (x[3])
        s = sb_add(s, x[3]);
    *weights = c->mask ? sb_masked_softmax(s, mask(c), 1) : sb_softmax(s);
    sb_tensor *y = sb_matmul(sb_dropout(*weights, c->dropout), v);
    return c->layout == SB_LAYOUT_LENGTH_FIRST ? sb_permute(y, 4, (const int[]){0, 2, 1, 3}) : y;
}

sb_attention_options variant_options(const struct variant *c, sb_tensor *const x[])
{
    return (sb_attention_options){.layout = c->layout,
                                  .mask = mask(c),
                                  .score = c->score,
                                  .scale = c->scale,
                                  .temperature = c->temperature == TEMPERATURE_FIXED ? 0.7 : 0,
                                  .log_temperature = x[4],
                                  .dropout = c->dropout,
                                  .bias = x[3],
                                  .algorithm = SB_ATTENTION_TILED};
}

sb_tensor *variant_forward(const struct variant *c, sb_tensor *const x[], enum way way,
                           sb_tensor **weights)
{
    if (way == OPERATIONS)
        return compose(c, x, weights);
    sb_attention_options o = variant_options(c, x);
    o.algorithm = way == COMPOSED ? SB_ATTENTION_COMPOSED : SB_ATTENTION_TILED;
    o.weights = way == COMPOSED ? weights : NULL;
    sb_tensor *y = sb_attention(x[0], x[1], x[2], &o);
    if (way == TILED)
        *weights = sb_attention_weights(y, 0, c->Lq);
    return y;
}

/* The sum of y w for weights w fixed by y's shape. */
static sb_tensor *reduce(sb_tensor *y, uint64_t seed)
{
    sb_tensor *w = test_leaf(sb_tensor_dtype(y), seed, sb_tensor_rank(y),
                             (int64_t[]){sb_tensor_dim(y, 0), sb_tensor_dim(y, 1),
                                         sb_tensor_dim(y, 2), sb_tensor_dim(y, 3)});
    return sb_sum(sb_multiply(y, w), SB_ALL, false);
}

void variant_run(const struct variant *c, sb_tensor *const x[], enum way way, bool weights_count,
                 sb_tensor *result[RESULTS])
{
    sb_random random = sb_random_new(c->seed, SB_STREAM_TRAIN);
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *weights = NULL, *y = variant_forward(c, x, way, &weights);
    cr_assert(y && weights, "variant %d: %s", (int)c->seed, sb_error());
    sb_keep(y);
    sb_keep(weights);
    sb_tensor *loss = reduce(y, 7);
    if (weights_count && way != TILED)
        loss = sb_add(loss, reduce(weights, 8));
    cr_assert(sb_backward(loss), "variant %d: %s", (int)c->seed, sb_error());
    result[0] = retained(y);
    result[1] = retained(weights);
    for (int i = 0; i < VARIANT_INPUTS; i++) {
        result[2 + i] = x[i] ? retained(sb_tensor_grad(x[i])) : NULL;
        sb_tensor_clear_grad(x[i]);
    }
}

double variant_least_size(const struct variant *c, int i)
{
    const double scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->D);
    if (i == 2 || i == 3)
        return scale * sqrt((double)c->Dv);
    const bool same = c->bias == BIAS_QUERIES || c->bias == BIAS_ONE || c->Lk == 1;
    return i == 6 || (i == 5 && same) ? 1 : 0;
}

double variant_difference(const struct variant *c, int i, const sb_tensor *a, const sb_tensor *b)
{
    double worst = 0, largest = 0, *x = numbers_of(a), *y = numbers_of(b);
    for (int64_t e = 0; e < sb_tensor_size(b); e++) {
        const double error = fabs(x[e] - y[e]);
        worst = isnan(worst) || error <= worst ? worst : error;
        largest = fmax(largest, fabs(y[e]));
    }
    largest = fmax(largest, variant_least_size(c, i));
    return worst == 0 ? 0 : largest > 0 ? worst / largest : worst;
}

void variant_expect_same(const struct variant *c, sb_dtype dtype, enum way way, enum way other,
                         double tolerance)
{
    static const char *const names[RESULTS] = {"y",     "weights",         "dq", "dk", "dv",
                                               "dbias", "dlog_temperature"};
    sb_tensor *x[VARIANT_INPUTS], *got[RESULTS], *expected[RESULTS];
    variant_inputs(c, dtype, x);
    bool weights_count = c->seed % 2 && way != TILED && other != TILED;
    variant_run(c, x, way, weights_count, got);
    variant_run(c, x, other, weights_count, expected);
    for (int i = 0; i < RESULTS; i++) {
        if (i < 2 || x[i - 2])
            cr_expect(variant_difference(c, i, got[i], expected[i]) <= tolerance * (i == 6 ? 8 : 1),
                      "variant %d: %s differs by %g (lengths %d, %d, heads %d, %d, mask %d, bias "
                      "%d, score %d)",
                      (int)c->seed, names[i], variant_difference(c, i, got[i], expected[i]),
                      (int)c->Lq, (int)c->Lk, (int)c->H, (int)c->G, c->mask, c->bias,
                      (int)c->score);
    }
}
