/* Queries without a key pass no gradient, whatever is in them: not to what they are multiplied by
   before attention either. */
#include "tests/support/test.h"

enum { B = 2, LQ = 5, LK = 3, H = 2, D = 4 };

static bool heads_first;

/* Query 2 of head 1 in sequence 0. */
static sb_mask *pairs(void)
{
    bool kept[B * H * LQ * LK];
    for (int i = 0; i < B * H * LQ * LK; i++)
        kept[i] = i / LK != LQ + 2;
    return sb_mask_allow(sb_tape_own(sb_tensor_from(SB_BOOL, SB_SHAPE(B, H, LQ, LK), kept)));
}

/* The queries of sequence 0. */
static sb_mask *lengths(void)
{
    return sb_mask_lengths(
        sb_tape_own(sb_tensor_from(SB_I32, SB_SHAPE(B), (const int32_t[]){0, 2})));
}

/* The first two queries of each sequence. */
static sb_mask *last(void)
{
    return sb_mask_causal_last();
}

static bool is_blocked(sb_mask *(*mask)(void), int b, int h, int i)
{
    return mask == pairs ? b == 0 && h == 1 && i == 2 : mask == lengths ? b == 0 : i < LQ - LK;
}

/* The result and the gradients. */
struct results {
    int n;
    sb_tensor *t[6];
};

struct operands {
    sb_tensor *q, *k, *v, *log_temperature, *dy;
};

static struct operands operands_new(sb_mask *(*mask)(void), bool spoiled)
{
    const int64_t L = heads_first ? H : LQ, heads = heads_first ? LQ : H;
    const int64_t keys = heads_first ? H : LK, key_heads = heads_first ? LK : H;
    struct operands x = {test_leaf(SB_F64, 1, SB_SHAPE(B, L, heads, D)),
                         test_leaf(SB_F64, 2, SB_SHAPE(B, keys, key_heads, D)),
                         test_leaf(SB_F64, 3, SB_SHAPE(B, keys, key_heads, D)),
                         test_leaf(SB_F64, 4, SB_SHAPE(H)),
                         test_leaf(SB_F64, 5, SB_SHAPE(B, L, heads, D))};
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < LQ; i++)
                for (int c = 0; is_blocked(mask, b, h, i) && c < D; c++) {
                    const int64_t row = heads_first ? (b * H + h) * LQ + i : (b * LQ + i) * H + h;
                    sb_tensor_set(x.q, row * D + c, spoiled ? (c ? NAN : INFINITY) : 0);
                    sb_tensor_set(x.dy, row * D + c, spoiled ? NAN : 0);
                }
    return x;
}

static struct results run(sb_attention_options o, sb_mask *(*mask)(void), bool temperature,
                          bool spoiled)
{
    struct operands x = operands_new(mask, spoiled);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    o.mask = mask();
    o.layout = heads_first ? SB_LAYOUT_HEADS_FIRST : SB_LAYOUT_LENGTH_FIRST;
    o.log_temperature = temperature ? x.log_temperature : NULL;
    sb_tensor *y = sb_tensor_retain(sb_keep(sb_attention(x.q, x.k, x.v, &o)));
    cr_assert(y && sb_backward_from(y, x.dy), "%s", sb_error());
    cr_assert(sb_tape_end(&tape));
    struct results r = {4, {y, take_grad(x.q), take_grad(x.k), take_grad(x.v)}};
    if (temperature)
        r.t[r.n++] = take_grad(x.log_temperature);
    sb_tensor *all[] = {x.q, x.k, x.v, x.log_temperature, x.dy};
    release_all(5, all);
    return r;
}

static void results_free(struct results *r)
{
    for (int i = 0; i < r->n; i++)
        sb_tensor_release(r->t[i]);
}

static const sb_attention_options ways[] = {
    {.score = SB_SCORE_SCALED},
    {.score = SB_SCORE_BALANCED},
    {.score = SB_SCORE_COSINE},
    {.score = SB_SCORE_SCALED, .algorithm = SB_ATTENTION_TILED},
    {.score = SB_SCORE_COSINE, .algorithm = SB_ATTENTION_TILED},
    {.score = SB_SCORE_SCALED, .softcap = 2},
};

TEST(mask_queries, nan_in_a_query_without_a_key_reaches_no_gradient)
{
    sb_mask *(*const masks[])(void) = {pairs, lengths, last};
    for (int way = 0; way < (int)(sizeof ways / sizeof ways[0]) * 2 * 3 * 2;
         way += test_sanitized() ? 5 : 1) {
        const sb_attention_options o = ways[way / 12];
        sb_mask *(*const mask)(void) = masks[way / 4 % 3];
        const bool temperature = way / 2 % 2;
        heads_first = way % 2;
        struct results clean = run(o, mask, temperature, false);
        struct results spoiled = run(o, mask, temperature, true);
        for (int i = 0; i < clean.n; i++)
            cr_expect(test_relative(spoiled.t[i], clean.t[i]) <= 1e-15, "way %d, tensor %d: %g",
                      way, i, test_relative(spoiled.t[i], clean.t[i]));
        results_free(&clean);
        results_free(&spoiled);
    }
}

struct attention {
    sb_mask *(*mask)(void);
    int way;
};

static sb_tensor *run_loss(void *context, sb_tensor *const x[])
{
    const struct attention *a = context;
    sb_attention_options o = ways[a->way];
    o.mask = a->mask();
    o.log_temperature = x[3];
    return sb_sum(sb_attention(x[0], x[1], x[2], &o), SB_ALL, false);
}

CPU_TEST(mask_queries, exact_derivatives_are_finite_there_too)
{
    heads_first = false;
    for (int way = 0; way < (int)(sizeof ways / sizeof ways[0]); way++) {
        struct operands x = operands_new(pairs, true);
        struct attention a = {pairs, way};
        sb_tensor *in[] = {x.q, x.k, x.v, x.log_temperature}, *hv[4], *v[4];
        for (int i = 0; i < 4; i++)
            v[i] = sb_tensor_full(SB_F64, in[i]->rank, in[i]->dim, 0.5);
        cr_assert(sb_hvp(run_loss, &a, in, v, 4, hv), "%s", sb_error());
        for (int i = 0; i < 4; i++) {
            for (int64_t k = 0; k < sb_tensor_size(hv[i]); k++)
                cr_assert(isfinite(sb_tensor_get(hv[i], k)), "way %d, input %d", way, i);
            sb_tensor_release(hv[i]);
            sb_tensor_release(v[i]);
            sb_tensor_release(in[i]);
        }
        sb_tensor_release(x.dy);
    }
}
