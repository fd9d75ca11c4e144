/* Masks in attention: blocked pairs have no effect, whatever their values are; NaN and infinities
   of kept pairs propagate. */
#include "ops/kernel.h"
#include "tests/support/test.h"

enum { B = 2, L = 6, H = 2, D = 5, ROW = H * D, SEQUENCE = L * ROW };

struct run {
    sb_tensor *q, *k, *v, *dy; /* (B, L, H, D) */
    sb_tensor *bias;           /* (H, L, L) */
    sb_tensor *y, *dq, *dk, *dv, *dbias;
};

static struct run run_new(sb_dtype dtype)
{
    struct run r = {0};
    r.q = test_leaf(dtype, 1, SB_SHAPE(B, L, H, D));
    r.k = test_leaf(dtype, 2, SB_SHAPE(B, L, H, D));
    r.v = test_leaf(dtype, 3, SB_SHAPE(B, L, H, D));
    r.dy = test_leaf(dtype, 4, SB_SHAPE(B, L, H, D));
    r.bias = test_leaf(dtype, 5, SB_SHAPE(H, L, L));
    return r;
}

static sb_attention_algorithm algorithm = SB_ATTENTION_COMPOSED;

/* Attention and its gradients; the mask is made on the tape. */
static void run(struct run *r, sb_mask *(*mask)(void), bool biased, double dropout)
{
    sb_random random = sb_random_new(1, SB_STREAM_TRAIN);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_attention_options o = {.mask = mask(), .bias = biased ? r->bias : NULL, .dropout = dropout};
    o.algorithm = algorithm;
    r->y = retained(sb_keep(sb_attention(r->q, r->k, r->v, &o)));
    MUST(sb_backward_from(r->y, r->dy));
    cr_assert(sb_tape_end(&tape));
    r->dq = take_grad(r->q);
    r->dk = take_grad(r->k);
    r->dv = take_grad(r->v);
    r->dbias = take_grad(r->bias);
}

static void spoil_row(sb_tensor *x, int64_t b, int64_t l, double value)
{
    for (int64_t i = 0; i < ROW; i++)
        sb_tensor_set(x, b * SEQUENCE + l * ROW + i, value);
}

static bool row_is(const sb_tensor *x, int64_t b, int64_t l, double value)
{
    for (int64_t i = 0; i < ROW; i++)
        if (sb_tensor_get(x, b * SEQUENCE + l * ROW + i) != value)
            return false;
    return true;
}

static bool row_is_nan(const sb_tensor *x, int64_t b, int64_t l)
{
    for (int64_t i = 0; i < ROW; i++)
        if (!isnan(sb_tensor_get(x, b * SEQUENCE + l * ROW + i)))
            return false;
    return true;
}

/* Whether two rows are equal up to rounding. */
static bool row_same(const sb_tensor *x, const sb_tensor *y, int64_t b, int64_t l)
{
    for (int64_t i = b * SEQUENCE + l * ROW; i < b * SEQUENCE + l * ROW + ROW; i++)
        if (!(fabs(sb_tensor_get(x, i) - sb_tensor_get(y, i)) <= 1e-5))
            return false;
    return true;
}

static sb_mask *pairs(const double *allowed)
{
    return sb_mask_allow(sb_tape_own(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(L, L), allowed)));
}

static sb_mask *four_keys(void)
{
    sb_tensor *lengths = sb_tape_own(sb_tensor_full(SB_I32, SB_SHAPE(B), 4));
    return sb_mask_lengths(lengths);
}

static sb_mask *four_keys_dense(void)
{
    const double allowed[] = {1, 1, 1, 1, 0, 0};
    return sb_mask_allow(sb_tape_own(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(L), allowed)));
}

/* Queries 0..2 attend to the keys 0..2 only, the others to all. */
static sb_mask *two_groups(void)
{
    const double allowed[L * L] = {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0,
                                   0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
    return pairs(allowed);
}

static sb_mask *no_query_2(void)
{
    double allowed[L * L];
    for (int i = 0; i < L * L; i++)
        allowed[i] = i / L != 2;
    return pairs(allowed);
}

/* Each check in both dtypes, with each set of kernels, by both algorithms, with and without a bias
   and dropout. */
static void in_all_ways(void (*check)(sb_dtype dtype, bool biased, double dropout))
{
    enum kernel_set usual = kernel_cpu_set();
    for (enum kernel_set set = KERNELS_CPU; set <= KERNELS_CPU_V4; set++)
        for (int way = 0; test_kernel_set(set) && way < 8; way++) {
            algorithm = way / 4 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
            check(SB_F32, way % 2, way / 2 % 2 * 0.5);
            check(SB_F64, way % 2, way / 2 % 2 * 0.5);
        }
    kernel_use_cpu_set(usual);
}

static void check_padding(sb_dtype dtype, sb_mask *(*mask)(void), double value, bool biased,
                          double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    for (int64_t l = 4; l < L; l++) {
        spoil_row(spoiled.k, 1, l, value);
        spoil_row(spoiled.v, 1, l, value);
    }
    run(&clean, mask, biased, dropout);
    run(&spoiled, mask, biased, dropout);
    for (int64_t l = 0; l < L; l++) {
        cr_expect(row_same(spoiled.y, clean.y, 1, l) && row_same(spoiled.dq, clean.dq, 1, l) &&
                      row_same(spoiled.dk, clean.dk, 1, l) && row_same(spoiled.dv, clean.dv, 1, l),
                  "row %d", (int)l);
        cr_expect(l < 4 || (row_is(spoiled.dk, 1, l, 0) && row_is(spoiled.dv, 1, l, 0)));
    }
    cr_expect(!biased || test_relative(spoiled.dbias, clean.dbias) < 1e-5);
}

static void check_all_padding(sb_dtype dtype, bool biased, double dropout)
{
    const double values[] = {NAN, INFINITY, -INFINITY, 1e30};
    for (int i = 0; i < 4; i++) {
        check_padding(dtype, four_keys, values[i], biased, dropout);
        check_padding(dtype, four_keys_dense, values[i], biased, dropout);
    }
}

TEST(attention_mask, padding_has_no_effect)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    in_all_ways(check_all_padding);
}

/* Key 4 and its value are NaN: the group that attends to it is NaN, the other is unchanged. */
static void check_groups(sb_dtype dtype, bool biased, double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    spoil_row(spoiled.k, 0, 4, NAN);
    spoil_row(spoiled.v, 0, 4, NAN);
    run(&clean, two_groups, biased, dropout);
    run(&spoiled, two_groups, biased, dropout);
    for (int64_t l = 0; l < L; l++) {
        if (l >= 3) {
            cr_expect(row_is_nan(spoiled.y, 0, l) && row_is_nan(spoiled.dq, 0, l) &&
                      row_is_nan(spoiled.dk, 0, l) && row_is_nan(spoiled.dv, 0, l));
            continue;
        }
        cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l) &&
                      row_same(spoiled.dk, clean.dk, 0, l) && row_same(spoiled.dv, clean.dv, 0, l),
                  "row %d", (int)l);
        cr_expect(row_same(spoiled.y, clean.y, 1, l) && row_same(spoiled.dk, clean.dk, 1, l));
    }
}

TEST(attention_mask, nan_reaches_only_queries_that_attend_to_it)
{
    in_all_ways(check_groups);
}

/* In a causal mask a NaN in the last key and value reaches the last query alone. */
static void check_causal(sb_dtype dtype, bool biased, double dropout)
{
    for (int which = 0; which < 2; which++) {
        struct run clean = run_new(dtype), spoiled = run_new(dtype);
        spoil_row(which ? spoiled.v : spoiled.k, 0, L - 1, NAN);
        run(&clean, sb_mask_causal, biased, 0);
        run(&spoiled, sb_mask_causal, biased, 0);
        for (int64_t l = 0; l < L - 1; l++)
            cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l));
        cr_expect(row_is_nan(spoiled.y, 0, L - 1) && row_is_nan(spoiled.dq, 0, L - 1));
    }
    (void)dropout;
}

TEST(attention_mask, nan_in_the_last_key_reaches_only_the_last_query)
{
    in_all_ways(check_causal);
}

/* Query 2 is fully masked: whatever q and dy are there, y and dq are 0, and it adds nothing to the
   other gradients. */
static void check_masked_query(sb_dtype dtype, bool biased, double dropout)
{
    struct run clean = run_new(dtype), spoiled = run_new(dtype);
    spoil_row(clean.q, 0, 2, 0);
    spoil_row(clean.dy, 0, 2, 0);
    spoil_row(spoiled.q, 0, 2, NAN);
    spoil_row(spoiled.dy, 0, 2, INFINITY);
    run(&clean, no_query_2, biased, dropout);
    run(&spoiled, no_query_2, biased, dropout);
    cr_expect(row_is(spoiled.y, 0, 2, 0) && row_is(spoiled.dq, 0, 2, 0));
    cr_expect(row_is(spoiled.y, 1, 2, 0) && row_is(spoiled.dq, 1, 2, 0));
    for (int64_t l = 0; l < L; l++)
        cr_expect(row_same(spoiled.y, clean.y, 0, l) && row_same(spoiled.dq, clean.dq, 0, l) &&
                      row_same(spoiled.dk, clean.dk, 0, l) && row_same(spoiled.dv, clean.dv, 0, l),
                  "row %d", (int)l);
    for (int64_t h = 0; biased && h < H; h++)
        for (int64_t j = 0; j < L; j++)
            cr_expect(sb_tensor_get(spoiled.dbias, (h * L + 2) * L + j) == 0);
}

TEST(attention_mask, a_query_without_keys_is_zero_and_passes_no_gradient)
{
    in_all_ways(check_masked_query);
}

static sb_mask *no_keys(void)
{
    sb_tensor *lengths = sb_tape_own(sb_tensor_zeros(SB_I32, SB_SHAPE(B)));
    return sb_mask_lengths(lengths);
}

static bool is_zero(const sb_tensor *x)
{
    for (int64_t i = 0; i < sb_tensor_size(x); i++)
        if (sb_tensor_get(x, i) != 0)
            return false;
    return true;
}

static void check_masked_batch(sb_dtype dtype, bool biased, double dropout)
{
    struct run r = run_new(dtype);
    for (int64_t l = 0; l < L; l++) {
        spoil_row(r.q, 0, l, NAN);
        spoil_row(r.k, 0, l, NAN);
        spoil_row(r.v, 0, l, INFINITY);
        spoil_row(r.dy, 0, l, NAN);
    }
    run(&r, no_keys, biased, dropout);
    cr_expect(is_zero(r.y) && is_zero(r.dq) && is_zero(r.dk) && is_zero(r.dv));
    cr_expect(!biased || is_zero(r.dbias));
}

TEST(attention_mask, sequences_of_length_zero_give_zeros)
{
    in_all_ways(check_masked_batch);
}

static sb_mask *no_mask(void)
{
    return NULL;
}

/* Without a mask, NaN in any of q, k, v propagates, even from a value whose weight rounds to 0. */
static void check_visible(sb_dtype dtype, bool biased, double dropout)
{
    for (int which = 0; which < 3; which++)
        for (int masked = 0; masked < 2; masked++) {
            struct run r = run_new(dtype);
            spoil_row(which == 0 ? r.q : which == 1 ? r.k : r.v, 0, 1, NAN);
            run(&r, masked ? four_keys : no_mask, biased, 0);
            cr_expect(row_is_nan(r.y, 0, 1));
            cr_expect(row_is_nan(r.y, 0, 3) == (which > 0));
            cr_expect(row_same(r.y, r.y, 1, 1), "a NaN of sequence 0 reaches sequence 1");
        }
    for (int masked = 0; masked < 2; masked++) {
        struct run r = run_new(dtype);
        for (int64_t i = 0; i < ROW; i++) {
            sb_tensor_set(r.q, i, 1);
            for (int64_t l = 0; l < L; l++)
                sb_tensor_set(r.k, l * ROW + i, l == 1 ? -2000 : 1);
        }
        spoil_row(r.v, 0, 1, NAN);
        run(&r, masked ? four_keys : no_mask, false, 0);
        cr_expect(row_is_nan(r.y, 0, 0), "a weight that rounds to 0 hides a NaN");
    }
    (void)dropout;
}

TEST(attention_mask, nan_in_a_kept_pair_always_propagates)
{
    too_slow(RACES, "its kernels run in shorter tests too");
    in_all_ways(check_visible);
}

/* The same on a tape that does not record, which uses other matrix products. */
TEST(attention_mask, the_same_holds_without_recording)
{
    enum kernel_set usual = kernel_cpu_set();
    for (int way = 0; way < 2 * (KERNELS_CPU_V4 + 1); way++) {
        if (!test_kernel_set((enum kernel_set)(way / 2)))
            continue;
        struct run r = run_new(SB_F32);
        spoil_row(r.k, 0, L - 1, NAN);
        spoil_row(r.v, 0, L - 1, NAN);
        TAPE(SB_NO_RECORD);
        sb_attention_options o = {.mask = sb_mask_causal()};
        o.algorithm = way % 2 ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
        sb_tensor *y = sb_attention(r.q, r.k, r.v, &o);
        for (int64_t l = 0; l < L; l++)
            cr_expect(row_is_nan(y, 0, l) == (l == L - 1) && row_same(y, y, 0, l) == (l < L - 1));
        o.mask = no_keys();
        cr_expect(is_zero(sb_attention(r.q, r.k, r.v, &o)));
    }
    kernel_use_cpu_set(usual);
}
