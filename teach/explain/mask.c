/* softback explain mask: the ways to block keys, and what each does to weights and gradients. */
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include <math.h>

enum { N = 4 };

static const double upstream[N] = {1, 0, 0, -1};

/* A way to mask: scores x (1, 4) and what is kept become weights. */
typedef sb_tensor *(*way)(sb_tensor *x, const double kept[N]);

static sb_tensor *by_mask(sb_tensor *x, const double kept[N])
{
    return sb_masked_softmax(x, sb_mask_allow(constant_of(SB_BOOL, SB_SHAPE(N), kept)), 1);
}

static sb_tensor *added(sb_tensor *x, const double kept[N], double blocked)
{
    double bias[N];
    for (int i = 0; i < N; i++)
        bias[i] = kept[i] != 0 ? 0 : blocked;
    return sb_add(x, constant_of(SB_F32, SB_SHAPE(N), bias));
}

static sb_tensor *by_infinity(sb_tensor *x, const double kept[N])
{
    return naive_softmax(added(x, kept, -INFINITY));
}

static sb_tensor *by_large_number(sb_tensor *x, const double kept[N])
{
    return naive_softmax(added(x, kept, -1e9));
}

/* S + (1 - M) (-inf): at kept pairs 0 (-inf), which is NaN. */
static sb_tensor *by_product(sb_tensor *x, const double kept[N])
{
    sb_tensor *m = constant_of(SB_F32, SB_SHAPE(N), kept);
    sb_tensor *one = sb_tape_own(sb_tensor_scalar(SB_F32, 1));
    return naive_softmax(sb_add(x, sb_scale(sb_subtract(one, m), -INFINITY)));
}

static void add_row(struct page *page, const char *name, way mask, const double kept[N])
{
    static const double scores[N] = {2, 1, 0.1, -1};
    double a[N] = {0}, ds[N] = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = variable_of(SB_F32, SB_SHAPE(1, N), scores);
    sb_tensor *g = constant_of(SB_F32, SB_SHAPE(1, N), upstream);
    sb_tensor *y = sb_keep(mask(x, kept));
    bool ok = y && sb_backward_from(y, g) && sb_tensor_read(y, a) &&
              sb_tensor_read(sb_tensor_grad(x), ds);
    page_need(page, sb_tape_end(&tape) && ok);
    PAGE_NUMBERS(page, name, a[0], a[1], a[2], a[3], ds[0], ds[1], ds[2], ds[3]);
}

static void write_ways(struct page *page)
{
    static const double half[N] = {1, 1, 0, 0}, none[N] = {0};
    page_text(page,
              "Scores 2, 1, 0.1, -1 and upstream gradients g = 1, 0, 0, -1, in float32. First "
              "two of four keys are kept, then none. \"masked\" is the library's "
              "sb_masked_softmax. The other ways are naive: a plain softmax, after something "
              "is added to the scores. M is 1 where a key is kept, and otherwise 0.");
    page_table(page, "ways",
               "how | a_0 .3 | a_1 .3 | a_2 .3 | a_3 .3 | ds_0 .3 | ds_1 .3 | ds_2 .3 | ds_3 .3");
    add_row(page, "half: masked", by_mask, half);
    add_row(page, "half: + -inf", by_infinity, half);
    add_row(page, "half: + -1e9", by_large_number, half);
    add_row(page, "half: + (1-M)(-inf)", by_product, half);
    add_row(page, "none: masked", by_mask, none);
    add_row(page, "none: + -inf", by_infinity, none);
    add_row(page, "none: + -1e9", by_large_number, none);
    page_text(page,
              "With some keys kept, all ways but the product agree; 0 (-inf) is NaN at every "
              "*kept* key. With none, -inf gives NaN, and -1e9 absorbs the scores: in float32 "
              "2 - 1e9 is -1e9, so the row attends evenly to keys that are forbidden, or to "
              "padding. softback decides by the mask alone: weights, output and gradients are 0.");
}

/* Attention of two queries over four keys; v_2 is NaN. */
static void write_nan(struct page *page, bool blocked)
{
    static const double q[] = {1, 0, 0, 1}, k[] = {1, 0, 0, 1, 1, 1, -1, 0};
    static const double v[] = {1, 2, NAN, 4}, kept[] = {1, 1, 0, 1};
    double y[2] = {0}, dq[4] = {0}, dv[N] = {0};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *tq = variable_of(SB_F32, SB_SHAPE(2, 2), q);
    sb_tensor *tk = constant_of(SB_F32, SB_SHAPE(N, 2), k);
    sb_tensor *tv = variable_of(SB_F32, SB_SHAPE(N, 1), v);
    sb_tensor *allowed = constant_of(SB_BOOL, SB_SHAPE(N), kept);
    const sb_attention_options options = {.mask = blocked ? sb_mask_allow(allowed) : NULL};
    sb_tensor *out = sb_keep(sb_attention(tq, tk, tv, &options));
    bool ok = out && sb_backward(sb_sum(out, SB_ALL, false)) && sb_tensor_read(out, y) &&
              sb_tensor_read(sb_tensor_grad(tq), dq) && sb_tensor_read(sb_tensor_grad(tv), dv);
    page_need(page, sb_tape_end(&tape) && ok);
    PAGE_NUMBERS(page, blocked ? "blocked" : "kept", y[0], y[1], dq[0], dq[1], dv[0], dv[2]);
}

static void write(struct page *page, const struct explain_options *o)
{
    (void)o;
    page_title(page, "a blocked key has weight 0 and gradient 0");
    write_ways(page);
    page_text(
        page,
        "One NaN in v, kept or blocked by the mask of sb_attention. A kept NaN stays visible: it "
        "is in every output, in dq, and from there in the gradient of every shared weight; only "
        "the gradient of v itself is finite, since it is aᵀ dy. A blocked NaN does not leak.");
    page_table(page, "NaN", "v_2 is | y_0 .3 | y_1 .3 | dq_00 .3 | dq_01 .3 | dv_0 .3 | dv_2 .3");
    write_nan(page, false);
    write_nan(page, true);
}

const struct topic topic_mask = {"mask", "-inf, -1e9, fully masked rows, and a NaN", 0, NULL,
                                 write};
