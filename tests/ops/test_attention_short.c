/* Short rows are processed in vectors, several together: the same bits as row by row, which is how
   rows with a dense mask are processed. */
#include "ops/kernel.h"
#include "tests/support/test.h"
#include <stdio.h>

enum { B = 2, H = 2, D = 5 };

/* Sizes around those of vectors and blocks, up to the longest short row. */
static const int64_t sizes[][2] = {{1, 3},   {4, 1},   {5, 8},   {7, 15},  {16, 16}, {17, 33},
                                   {33, 17}, {20, 48}, {64, 63}, {70, 64}, {12, 65}};

enum kind { CAUSAL, LENGTHS, KINDS };

struct call {
    enum kind kind;
    bool dense, biased;
    double dropout;
    sb_tensor *x[4]; /* q, k, v, bias */
    sb_tensor *dy, *y, *weights, *dx[4];
};

/* The keys that sentence b keeps for query i; none for the last query of causal ones. */
static int64_t kept_keys(const struct call *c, int64_t b, int64_t i)
{
    const int64_t Lk = c->x[1]->dim[1];
    const int64_t kept = c->kind == CAUSAL ? i + 1 : Lk - (Lk > 2 ? 2 * b : b);
    return kept < Lk ? kept : Lk;
}

static sb_mask *mask_of(const struct call *c)
{
    const int64_t Lq = c->x[0]->dim[1], Lk = c->x[1]->dim[1];
    if (!c->dense && c->kind == CAUSAL)
        return sb_mask_causal();
    sb_tensor *x = c->dense ? sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, 1, Lq, Lk))
                            : sb_tensor_zeros(SB_I32, SB_SHAPE(B));
    for (int64_t n = 0; !c->dense && n < B; n++)
        sb_tensor_set(x, n, (double)kept_keys(c, n, 0));
    for (int64_t n = 0; c->dense && n < B * Lq * Lk; n++)
        sb_tensor_set(x, n, n % Lk < kept_keys(c, n / Lk / Lq, n / Lk % Lq));
    return c->dense ? sb_mask_allow(sb_tape_own(x)) : sb_mask_lengths(sb_tape_own(x));
}

static void run(struct call *c)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.mask = mask_of(c),
                              .bias = c->biased ? c->x[3] : NULL,
                              .dropout = c->dropout,
                              .algorithm = SB_ATTENTION_COMPOSED,
                              .weights = &c->weights};
    c->y = retained(sb_keep(sb_attention(c->x[0], c->x[1], c->x[2], &o)));
    retained(sb_keep(c->weights));
    MUST(sb_backward_from(c->y, c->dy));
    cr_assert(sb_tape_end(&tape));
    for (int i = 0; i < 4; i++) {
        c->dx[i] = retained(sb_tensor_grad(c->x[i]));
        sb_tensor_clear_grad(c->x[i]);
    }
}

static void same(const struct call *a, const struct call *b, const char *what)
{
    cr_assert(test_same_bits(a->y, b->y), "y, %s", what);
    cr_assert(test_same_bits(a->weights, b->weights), "the weights, %s", what);
    for (int i = 0; i < (a->biased ? 4 : 3); i++)
        cr_assert(test_same_bits(a->dx[i], b->dx[i]), "the gradient of input %d, %s", i, what);
}

/* Every kind of mask, with and without a bias and dropout. */
static void in_all_ways(sb_dtype dtype, int64_t Lq, int64_t Lk)
{
    struct call c = {.x = {test_leaf(dtype, 1, SB_SHAPE(B, Lq, H, D)),
                           test_leaf(dtype, 2, SB_SHAPE(B, Lk, H, D)),
                           test_leaf(dtype, 3, SB_SHAPE(B, Lk, H, D)),
                           test_leaf(dtype, 4, SB_SHAPE(H, Lq, Lk))},
                     .dy = test_leaf(dtype, 5, SB_SHAPE(B, Lq, H, D))};
    for (int way = 0; way < 4 * KINDS; way++) {
        struct call dense, range = c;
        char what[100];
        range.kind = way / 4;
        range.biased = way & 1;
        range.dropout = way & 2 ? 0.3 : 0;
        dense = range;
        dense.dense = true;
        snprintf(what, sizeof what, "%d x %d, kind %d, bias %d, dropout %g", (int)Lq, (int)Lk,
                 range.kind, range.biased, range.dropout);
        run(&range);
        run(&dense);
        same(&range, &dense, what);
    }
}

CPU_TEST(attention_short, has_the_bits_of_row_by_row)
{
    const enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (size_t n = 0; test_kernel_set(set) && n < sizeof sizes / sizeof *sizes; n++) {
            in_all_ways(SB_F32, sizes[n][0], sizes[n][1]);
            in_all_ways(SB_F64, sizes[n][0], sizes[n][1]);
        }
    kernel_use_cpu_set(usual);
}
