/* Masks: what they block, made of lengths, pairs, numbers and blocks. */
#include "tests/support/compare.h"
#include <float.h>

static const double ln2 = 0.6931471805599453;

static void expect_picture(sb_mask *mask, int64_t b, int64_t h, int64_t Lq, int64_t Lk,
                           const char *expected)
{
    const char *text = KEPT(sb_mask_text(MUST(mask), b, h, Lq, Lk));
    cr_expect(strcmp(text, expected) == 0, "the picture is\n%snot\n%s", text, expected);
}

TEST(mask, pictures_show_the_kept_pairs)
{
    TAPE(SB_NO_RECORD);
    expect_picture(sb_mask_causal(), 0, 0, 3, 4, "#...\n##..\n###.\n");
    expect_picture(sb_mask_causal_last(), 0, 0, 3, 4, "##..\n###.\n####\n");
    expect_picture(sb_mask_causal_last(), 0, 0, 3, 2, "..\n#.\n##\n");
    expect_picture(sb_mask_window(1, 0), 5, 7, 4, 3, "#..\n##.\n.##\n..#\n");
    expect_picture(sb_mask_window(0, 2), 0, 0, 2, 4, "###.\n.###\n");
    sb_tensor *lengths = owned(SB_I32, SB_SHAPE(2), (double[]){1, 3});
    expect_picture(sb_mask_lengths(lengths), 0, 0, 2, 3, "#..\n#..\n");
    expect_picture(sb_mask_lengths(lengths), 1, 4, 1, 3, "###\n");
    sb_tensor *pairs = owned(SB_BOOL, SB_SHAPE(2, 1, 3), (double[]){1, 0, 0, 0, 1, 1});
    expect_picture(sb_mask_allow(pairs), 0, 1, 2, 3, ".##\n.##\n");
    expect_picture(sb_mask_block(pairs), 0, 1, 2, 3, "#..\n#..\n");
    expect_picture(sb_mask_allow(pairs), 0, 0, 1, 3, "#..\n");
    sb_mask *both = sb_mask_and(sb_mask_causal(), sb_mask_block(pairs));
    expect_picture(both, 0, 0, 3, 3, "...\n.#.\n.##\n");
    expect_picture(both, 0, 0, 0, 3, "");
}

/* The mask keeps the first three of the scores 0, ln 2, ln 4, 1000: (1, 2, 4) / 7. At temperature
   1/2 they count as 0, ln 4, ln 16: (1, 4, 16) / 21. */
TEST(mask, masked_softmax_gives_the_hand_worked_weights)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(1, 4), (double[]){0, ln2, 2 * ln2, 1000});
    sb_tensor *blocked = owned(SB_BOOL, SB_SHAPE(4), (double[]){0, 0, 0, 1});
    sb_tensor *y = sb_masked_softmax(x, sb_mask_block(blocked), 1);
    sb_tensor *cold = sb_masked_softmax(x, sb_mask_block(blocked), 0.5);
    MUST(y && cold);
    for (int j = 0; j < 3; j++) {
        cr_expect(fabs(sb_tensor_get(y, j) - (1 << j) / 7.0) < 1e-15);
        cr_expect(fabs(sb_tensor_get(cold, j) - (1 << 2 * j) / 21.0) < 1e-15);
    }
    cr_expect(sb_tensor_get(y, 3) == 0 && sb_tensor_get(cold, 3) == 0);
}

/* With dy = (1, 0, 0, NaN) and the weights (1, 2, 4, -) / 7: dx = y (dy - y_0) / T. */
/* 1/T is 0 or infinite in f32 there, and the excluded scores -infinity. */
TEST(mask, temperatures_beyond_the_range_of_f32_make_rows_even_or_hard)
{
    TAPE(SB_NO_RECORD);
    for (sb_dtype dtype = SB_F32; dtype <= SB_BF16; dtype++) {
        sb_tensor *x = owned(dtype, SB_SHAPE(2, 2), (double[]){1, 2, 1, 2}),
                  *even = sb_masked_softmax(x, sb_mask_causal(), 1e47),
                  *hard = sb_masked_softmax(x, sb_mask_causal(), 1e-40);
        expect_numbers(even, 4, (const double[]){1, 0, 0.5, 0.5});
        expect_numbers(hard, 4, (const double[]){1, 0, 0, 1});
    }
}

TEST(mask, masked_softmax_backward_gives_the_hand_worked_gradient)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 4), (double[]){0, 2 * ln2, 4 * ln2, NAN})));
    sb_tensor *dy = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, 4), (double[]){1, 0, 0, NAN}));
    const double expected[] = {6 / 49.0 / 2, -2 / 49.0 / 2, -4 / 49.0 / 2, 0};
    for (int kind = 0; kind < 2; kind++) { /* a range of keys, and a dense pattern */
        TAPE(SB_RECORD);
        sb_mask *mask = kind == 0
                            ? sb_mask_lengths(owned(SB_I32, SB_SHAPE(1), (double[]){3}))
                            : sb_mask_allow(owned(SB_BOOL, SB_SHAPE(4), (double[]){1, 1, 1, 0}));
        MUST(sb_backward_from(sb_masked_softmax(x, mask, 2), dy));
        for (int j = 0; j < 4; j++)
            cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), j) - expected[j]) < 1e-15);
        sb_tensor_clear_grad(x);
    }
}

/* exp(x / T) keep / sum of exp(x / T) keep; keep is x[1] in x's dtype. */
static sb_tensor *simple(sb_tensor *const x[], double temperature)
{
    sb_tensor *e = sb_multiply(sb_exp(sb_scale(x[0], 1 / temperature)), x[1]);
    return sb_divide(e, sb_sum(e, -1, true));
}

static void expect_simple(int64_t Lq, int64_t Lk, double temperature, bool first_key)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3, Lq, Lk));
    sb_tensor *dy = test_leaf(SB_F64, 2, SB_SHAPE(2, 3, Lq, Lk));
    sb_random random = sb_random_new((uint64_t)Lk, SB_STREAM_USER);
    sb_tensor *allowed = KEPT(sb_tensor_zeros(SB_BOOL, SB_SHAPE(2, 1, Lq, Lk)));
    for (int64_t i = 0; i < 2 * Lq * Lk; i++)
        sb_tensor_set(allowed, i, sb_random_uniform(&random) < 0.7 || (first_key && i % Lk == 0));
    sb_tensor *y[2], *dx[2];
    for (int way = 0; way < 2; way++) {
        TAPE(SB_RECORD);
        sb_tensor *keep = sb_cast(allowed, SB_F64);
        sb_mask *mask = sb_mask_allow(allowed);
        y[way] = retained(way == 0 ? sb_masked_softmax(x, mask, temperature)
                                   : simple((sb_tensor *[]){x, keep}, temperature));
        MUST(sb_backward_from(sb_keep(y[way]), dy));
        dx[way] = retained(sb_tensor_grad(x));
        sb_tensor_clear_grad(x);
    }
    cr_expect(test_relative(y[0], y[1]) < 1e-14);
    cr_expect(test_relative(dx[0], dx[1]) < 1e-12);
}

TEST(mask, masked_softmax_is_the_composition_of_simple_operations)
{
    const int64_t lengths[] = {1, 2, 7, 63, 64, 65, 255, 256, 257, 600};
    for (int i = 0; i < 10; i++)
        expect_simple(3, lengths[i], i % 2 ? 0.5 : 1, true);
}

/* Every combination of the kinds of mask compared with the same mask as a dense array. */
TEST(mask, a_combined_mask_keeps_pairs_that_all_its_masks_keep)
{
    enum { B = 2, H = 2, Lq = 5, Lk = 7 };
    TAPE(SB_NO_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(B, H, Lq, Lk));
    sb_tensor *lengths = owned(SB_I32, SB_SHAPE(B), (double[]){4, 7});
    sb_tensor *heads =
        owned(SB_BOOL, SB_SHAPE(H, 1, Lk), (double[]){1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1});
    sb_tensor *queries = owned(SB_BOOL, SB_SHAPE(Lq, 1), (double[]){0, 0, 0, 1, 0});
    for (int kinds = 1; kinds < 64; kinds++) {
        sb_mask *each[] = {sb_mask_causal(),         sb_mask_causal_last(), sb_mask_window(2, 1),
                           sb_mask_lengths(lengths), sb_mask_allow(heads),  sb_mask_block(queries)};
        sb_mask *mask = NULL;
        for (int n = 0; n < 6; n++)
            if (kinds >> n & 1)
                mask = mask ? sb_mask_and(mask, each[n]) : each[n];
        sb_tensor *pairs = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, H, Lq, Lk)));
        for (int64_t e = 0; e < B * H * Lq * Lk; e++) {
            int64_t b = e / (H * Lq * Lk), h = e / (Lq * Lk) % H, i = e / Lk % Lq, j = e % Lk;
            const bool keeps[] = {j <= i,
                                  j <= i + Lk - Lq,
                                  i - 2 <= j && j <= i + 1,
                                  j < (b == 0 ? 4 : 7),
                                  sb_tensor_get(heads, h * Lk + j) == 1,
                                  i != 3};
            bool kept = true;
            for (int n = 0; n < 6; n++)
                kept &= keeps[n] || !(kinds >> n & 1);
            sb_tensor_set(pairs, e, kept);
        }
        sb_tensor *y = sb_masked_softmax(x, mask, 1);
        sb_tensor *expected = sb_masked_softmax(x, sb_mask_allow(pairs), 1);
        MUST(y && expected);
        cr_expect(test_relative(y, expected) < 1e-15, "kinds %d", kinds);
        for (int64_t b = 0; b < B; b++)
            for (int64_t h = 0; h < H; h++) {
                char *text = KEPT(sb_mask_text(mask, b, h, Lq, Lk));
                char *other = KEPT(sb_mask_text(sb_mask_allow(pairs), b, h, Lq, Lk));
                cr_expect(strcmp(text, other) == 0, "kinds %d:\n%s\n%s", kinds, text, other);
            }
    }
}

/* Query 0 is fully masked, and its scores have NaN and infinities. */
static void expect_masked_row(sb_dtype dtype, bool dense)
{
    sb_tensor *x = KEPT(sb_tensor_requires_grad(
        sb_tensor_from_doubles(dtype, SB_SHAPE(3, 2), (double[]){NAN, INFINITY, 1, NAN, 2, 3})));
    sb_tensor *dy = KEPT(
        sb_tensor_from_doubles(dtype, SB_SHAPE(3, 2), (double[]){INFINITY, NAN, 5, NAN, 1, 3}));
    TAPE(SB_RECORD);
    sb_tensor *pairs = owned(SB_BOOL, SB_SHAPE(3, 2), (double[]){0, 0, 1, 0, 1, 1});
    sb_mask *mask = dense ? sb_mask_allow(pairs) : sb_mask_causal_last();
    sb_tensor *y = sb_masked_softmax(x, mask, 1);
    MUST(sb_backward_from(sb_keep(y), dy));
    for (int j = 0; j < 2; j++) {
        cr_expect(sb_tensor_get(y, j) == 0 && sb_tensor_get(sb_tensor_grad(x), j) == 0,
                  "key %d: %g, gradient %g", j, sb_tensor_get(y, j),
                  sb_tensor_get(sb_tensor_grad(x), j));
        cr_expect(sb_tensor_get(y, 2 + j) == !j && sb_tensor_get(sb_tensor_grad(x), 2 + j) == 0);
        cr_expect(sb_tensor_get(y, 4 + j) > 0.2 &&
                  fabs(sb_tensor_get(sb_tensor_grad(x), 4 + j)) > 0.2);
    }
}

TEST(mask, a_fully_masked_row_is_exactly_zero_and_so_is_its_gradient)
{
    for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++) {
        expect_masked_row(dtype, true);
        expect_masked_row(dtype, false);
    }
}

TEST(mask, without_keys_all_weights_are_zero)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(2, 1, 3), (double[]){NAN, 1, 2, 3, 4, 5});
    sb_tensor *lengths = owned(SB_I32, SB_SHAPE(1), (double[]){0});
    sb_tensor *y = MUST(sb_masked_softmax(x, sb_mask_lengths(lengths), 1));
    cr_expect(largest_of(y) == 0);
}

/* The kept weights of a row sum to 1, even if the kept scores are far below the blocked ones. */
TEST(mask, low_kept_scores_are_not_masked)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F32, SB_SHAPE(1, 3), (double[]){1e30, -1e30, -1e30});
    sb_tensor *blocked = owned(SB_BOOL, SB_SHAPE(1, 3), (double[]){1, 0, 0});
    sb_tensor *y = sb_masked_softmax(x, sb_mask_block(blocked), 1);
    cr_expect(sb_tensor_get(y, 0) == 0 && sb_tensor_get(y, 1) == 0.5 && sb_tensor_get(y, 2) == 0.5);
}

/* A NaN or an infinity at each position of a row, with the last key blocked. Kept, it changes all
   kept weights (to NaN, or one to 0); blocked, none. */
static void expect_visible(sb_dtype dtype, double value, bool dense)
{
    TAPE(SB_NO_RECORD);
    sb_mask *mask = dense ? sb_mask_allow(owned(SB_BOOL, SB_SHAPE(4), (double[]){1, 1, 1, 0}))
                          : sb_mask_lengths(owned(SB_I32, SB_SHAPE(1), (double[]){3}));
    for (int place = 0; place < 4; place++) {
        double values[4] = {1, 2, 3, 4};
        values[place] = value;
        sb_tensor *y = MUST(sb_masked_softmax(owned(dtype, SB_SHAPE(1, 4), values), mask, 1));
        for (int j = 0; j < 3; j++)
            cr_expect(isnan(sb_tensor_get(y, j)) == (place < 3 && value != -INFINITY), "%g at %d",
                      value, place);
        cr_expect(sb_tensor_get(y, 3) == 0, "the blocked key has %g with %g at %d",
                  sb_tensor_get(y, 3), value, place);
    }
}

TEST(mask, nan_in_a_blocked_entry_has_no_effect_and_in_a_kept_one_propagates)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (sb_dtype dtype = SB_F32; dtype <= SB_F64; dtype++)
            for (int dense = 0; dense < 2; dense++) {
                expect_visible(dtype, NAN, dense);
                expect_visible(dtype, -INFINITY, dense);
            }
}

/* All kept scores are -infinity: the weights are 0 / 0 = NaN, and not 0 as of a masked row. */
TEST(mask, kept_scores_of_minus_infinity_give_nan)
{
    TAPE(SB_NO_RECORD);
    sb_tensor *x = owned(SB_F64, SB_SHAPE(1, 3), (double[]){-INFINITY, -INFINITY, 1});
    sb_tensor *allowed = owned(SB_BOOL, SB_SHAPE(3), (double[]){1, 1, 0});
    sb_tensor *y = sb_masked_softmax(x, sb_mask_allow(allowed), 1);
    cr_expect(isnan(sb_tensor_get(y, 0)) && isnan(sb_tensor_get(y, 1)) && sb_tensor_get(y, 2) == 0);
}

/* A row of 12 keys alone, and with padding in a batch of longer rows: the same bits. */
TEST(mask, padding_does_not_change_the_bits_of_a_row)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int64_t L = 1; L < 70; L++) {
            int64_t Lk = L + 9;
            TAPE(SB_NO_RECORD);
            sb_tensor *padded = test_leaf(SB_F32, (uint64_t)L, SB_SHAPE(3, 1, 1, Lk));
            const float *values = test_data(padded);
            sb_tensor *alone = sb_tape_own(sb_tensor_from(SB_F32, SB_SHAPE(1, L), values + Lk));
            sb_tensor *lengths = owned(SB_I32, SB_SHAPE(3), (double[]){3, (double)L, (double)Lk});
            sb_tensor *whole = owned(SB_I32, SB_SHAPE(1), (double[]){(double)L});
            if (L < 3)
                sb_tensor_set(lengths, 0, 0);
            sb_tensor *y = sb_masked_softmax(padded, sb_mask_lengths(lengths), 0.3);
            sb_tensor *z = sb_masked_softmax(alone, sb_mask_lengths(whole), 0.3);
            MUST(y && z);
            const float *bits = test_data(y);
            cr_expect(memcmp(bits + Lk, test_data(z), tensor_bytes(z)) == 0, "length %lld",
                      (long long)L);
        }
}

CPU_TEST(mask, eight_masks_can_be_combined_and_not_nine)
{
    FAILED_TAPE(SB_RECORD);
    sb_mask *eight = sb_mask_causal();
    for (int i = 0; i < 3; i++)
        eight = sb_mask_and(eight, eight);
    cr_expect(eight != NULL);
    REFUSED("mask_and: 1 and 8 masks cannot be combined; the limit is 8",
            sb_mask_and(sb_mask_causal(), eight));
}

/* The blocks of memory that the masks get are full of bytes that are no tensors. */
CPU_TEST(mask, freeing_eight_masks_reads_nothing_behind_the_last)
{
    enum { BLOCKS = 8, BYTES = 496 }; /* which fill a block of the size that masks take, too */
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        cr_assert((block[i] = memory_new(BYTES)) != NULL);
    for (int i = 0; i < BLOCKS; i++) {
        memset(block[i], 0x5a, BYTES);
        memory_free(block[i]);
    }
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_mask *eight = sb_mask_causal();
    for (int i = 0; i < 3; i++)
        eight = sb_mask_and(eight, eight);
    cr_expect(eight && sb_tape_end(&tape));
}

CPU_TEST(mask, one_that_is_made_later_ends_the_memory_of_one_that_failed)
{
    sb_tensor *q = test_leaf(SB_F32, 1, SB_SHAPE(2, 3));
    REFUSED("mask_causal: no tape is open", sb_mask_causal());
    TAPE(SB_RECORD);
    cr_expect(sb_mask_causal() && sb_attention(q, q, q, NULL), "%s", sb_error());
}

/* Each way to fail to make a mask, followed by an attention that gets the NULL. */
TEST(mask, a_mask_that_failed_is_not_taken_for_no_mask)
{
    sb_tensor *q = test_leaf(SB_F32, 1, SB_SHAPE(2, 3));
    sb_tensor *wrong = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(3)));
    for (int way = 0; way < 3; way++) {
        FAILED_TAPE(SB_RECORD);
        sb_attention_options o = {0};
        o.mask = way == 0   ? sb_mask_lengths(wrong)
                 : way == 1 ? sb_mask_and(sb_mask_causal(), sb_mask_allow(wrong))
                            : sb_mask_window(0, -1);
        cr_expect(!o.mask && !sb_attention(q, q, q, &o));
        EXPECT_ERROR("mask_");
    }
    sb_attention_options o = {.mask = sb_mask_causal()}; /* before the tape is open */
    EXPECT_ERROR("mask_causal: no tape is open");
    REFUSED_ON_TAPE(SB_RECORD,
                    "attention: mask is NULL, because no tape was open when it was created",
                    sb_attention(q, q, q, &o));
    TAPE(SB_RECORD);
    cr_expect(sb_attention(q, q, q, NULL), "the failure is reported only once");
    o.mask = sb_mask_causal();
    cr_expect(sb_attention(q, q, q, &o) && sb_attention(q, q, q, NULL));
}

static bool make_and_use(void *x)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *pairs = sb_tape_own(sb_tensor_full(SB_BOOL, SB_SHAPE(3), 1));
    sb_mask *mask = sb_mask_and(sb_mask_causal(), sb_mask_allow(pairs));
    sb_backward(sb_sum(sb_masked_softmax(x, mask, 1), SB_ALL, false));
    bool ok = sb_tape_end(&tape);
    sb_tensor_clear_grad(x);
    return ok;
}

TEST(mask, each_allocation_may_fail)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 3));
    test_each_allocation_fails(make_and_use, x);
}

/* Queries without a key pass no gradient, whatever is in them: not to what they are multiplied by
   before attention either. */

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
struct outcome {
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

static struct outcome run(sb_attention_options o, sb_mask *(*mask)(void), bool temperature,
                          bool spoiled)
{
    struct operands x = operands_new(mask, spoiled);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    o.mask = mask();
    o.layout = heads_first ? SB_LAYOUT_HEADS_FIRST : SB_LAYOUT_LENGTH_FIRST;
    o.log_temperature = temperature ? x.log_temperature : NULL;
    sb_tensor *y = retained(sb_keep(sb_attention(x.q, x.k, x.v, &o)));
    MUST(y && sb_backward_from(y, x.dy));
    cr_assert(sb_tape_end(&tape));
    struct outcome r = {4, {y, take_grad(x.q), take_grad(x.k), take_grad(x.v)}};
    if (temperature)
        r.t[r.n++] = take_grad(x.log_temperature);
    return r;
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
        struct outcome clean = run(o, mask, temperature, false);
        struct outcome spoiled = run(o, mask, temperature, true);
        for (int i = 0; i < clean.n; i++)
            cr_expect(test_relative(spoiled.t[i], clean.t[i]) <= 1e-15, "way %d, tensor %d: %g",
                      way, i, test_relative(spoiled.t[i], clean.t[i]));
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
            v[i] = KEPT(sb_tensor_full(SB_F64, in[i]->rank, in[i]->dim, 0.5));
        MUST(sb_hvp(run_loss, &a, in, v, 4, hv));
        for (int i = 0; i < 4; i++)
            KEPT(hv[i]);
        for (int i = 0; i < 4; i++)
            for (int64_t k = 0; k < sb_tensor_size(hv[i]); k++)
                cr_assert(isfinite(sb_tensor_get(hv[i], k)), "way %d, input %d", way, i);
    }
}

/* ---- Masks that come as numbers with -inf ---- */

/* Every other number is allowed, NaN too: it must stay visible. */
TEST(mask_bias, minus_infinity_alone_blocks)
{
    const sb_dtype dtypes[] = {SB_F32, SB_F64, SB_BF16};
    for (int i = 0; i < 3; i++) {
        const double most = dtypes[i] == SB_F64 ? DBL_MAX : dtypes[i] == SB_F32 ? FLT_MAX : 3.3e38;
        TAPE(SB_NO_RECORD);
        sb_tensor *bias =
            constant(dtypes[i], SB_SHAPE(2, 5),
                     NUMBERS(0, -INFINITY, -most, most, -1, INFINITY, NAN, -1e-38, 3, -INFINITY));
        expect_picture(sb_mask_from_bias(bias), 0, 0, 2, 5, "#.###\n####.\n");
    }
}

/* As the bias too: blocked pairs have weight 0 in either algorithm, and a query without keys is 0
   and not NaN. */
TEST(mask_bias, attention_takes_both_from_one_tensor)
{
    const sb_attention_algorithm algorithms[] = {SB_ATTENTION_COMPOSED, SB_ATTENTION_TILED};
    for (int i = 0; i < 2; i++) {
        TAPE(SB_RECORD);
        sb_tensor *q = test_leaf(SB_F64, 1, SB_SHAPE(3, 2));
        sb_tensor *k = test_leaf(SB_F64, 2, SB_SHAPE(3, 2));
        sb_tensor *v = test_leaf(SB_F64, 3, SB_SHAPE(3, 2));
        sb_tensor *bias = leaf(SB_SHAPE(3, 3), NUMBERS(0.5, -INFINITY, 1, -INFINITY, -INFINITY,
                                                       -INFINITY, -INFINITY, 2, -INFINITY));
        const sb_attention_options o = {
            .bias = bias, .mask = sb_mask_from_bias(bias), .algorithm = algorithms[i]};
        sb_tensor *y = sb_keep(sb_attention(q, k, v, &o));
        MUST(y && sb_backward(sb_sum(sb_multiply(y, y), SB_ALL, false)));
        double s[2], weight[2];
        for (int j = 0; j < 2; j++) {
            s[j] = j + 0.5 * (1 - j); /* the bias */
            for (int d = 0; d < 2; d++)
                s[j] += sb_tensor_get(q, d) * sb_tensor_get(k, 4 * j + d) / sqrt(2);
        }
        for (int j = 0; j < 2; j++)
            weight[j] = exp(s[j]) / (exp(s[0]) + exp(s[1]));
        for (int d = 0; d < 2; d++) {
            const double expected =
                weight[0] * sb_tensor_get(v, d) + weight[1] * sb_tensor_get(v, 4 + d);
            cr_expect(fabs(sb_tensor_get(y, d) - expected) < 1e-14);
            cr_expect(sb_tensor_get(y, 2 + d) == 0, "the query without keys");
            cr_expect(fabs(sb_tensor_get(y, 4 + d) - sb_tensor_get(v, 2 + d)) < 1e-15);
        }
        for (int64_t n = 0; n < 6; n++)
            cr_expect(isfinite(sb_tensor_get(sb_tensor_grad(q), n)));
        cr_expect(sb_tensor_get(sb_tensor_grad(bias), 1) == 0);
    }
}

/* ---- mask blocks ---- */

TEST(mask_blocks, patterns_are_as_documented)
{
    TAPE(SB_RECORD);
    expect_picture(sb_mask_local(5, 5, 2, 0), 0, 0, 5, 5,
                   "##...\n"
                   "##...\n"
                   "..##.\n"
                   "..##.\n"
                   "....#\n");
    expect_picture(sb_mask_local(4, 6, 1, 1), 0, 0, 4, 6,
                   "##....\n"
                   "###...\n"
                   ".###..\n"
                   "..###.\n");
    expect_picture(sb_mask_strided(6, 6, 1, 0, 3), 0, 0, 6, 6,
                   "#.#..#\n"
                   ".##..#\n"
                   "..#..#\n"
                   "..##.#\n"
                   "..#.##\n"
                   "..#..#\n");
    expect_picture(sb_mask_global(5, 5, 1, 0, 1), 0, 0, 5, 5,
                   "#####\n"
                   "##...\n"
                   "#.#..\n"
                   "#..#.\n"
                   "#...#\n");
    const int64_t blocks[][2] = {{0, 1}, {1, 0}, {1, 2}};
    expect_picture(sb_mask_block_list(3, 5, 2, 3, blocks), 0, 0, 3, 5,
                   "..##.\n"
                   "..##.\n"
                   "##..#\n");
    expect_picture(sb_mask_and(sb_mask_local(4, 4, 2, 0), sb_mask_causal()), 0, 0, 4, 4,
                   "#...\n"
                   "##..\n"
                   "..#.\n"
                   "..##\n");
}

/* Different blocks for each head and sequence, compared with a dense mask of the same pairs. */
static void expect_like_pairs(int64_t size, int64_t L, sb_attention_algorithm algorithm)
{
    int64_t n = (L + size - 1) / size;
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(B, L, H, D));
    sb_tensor *kept = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, H, n, n)));
    sb_tensor *pairs = sb_tape_own(sb_tensor_zeros(SB_BOOL, SB_SHAPE(B, H, L, L)));
    double *block = numbers_of(kept), *pair = numbers_of(pairs);
    sb_random r = sb_random_new(3, SB_STREAM_USER);
    for (int64_t i = 0; i < B * H * n * n; i++)
        block[i] = sb_random_uniform(&r) < 0.4;
    for (int64_t at = 0; at < B * H * L * L; at++) {
        int64_t head = at / L / L, i = at / L % L, j = at % L;
        pair[at] = block[(head * n + i / size) * n + j / size];
    }
    MUST(sb_tensor_write(kept, block) && sb_tensor_write(pairs, pair));
    sb_attention_options o = {.mask = sb_mask_blocks(kept, size), .algorithm = algorithm};
    sb_tensor *y = sb_attention(x, x, x, &o);
    o = (sb_attention_options){.mask = sb_mask_allow(pairs), .algorithm = SB_ATTENTION_COMPOSED};
    sb_tensor *z = sb_attention(x, x, x, &o);
    cr_expect(test_relative(y, z) < 1e-13, "size %d, length %d: %g", (int)size, (int)L,
              test_relative(y, z));
}

TEST(mask_blocks, a_block_mask_keeps_the_pairs_of_its_blocks, MANY_CASES)
{
    for (int way = 0; way < 2; way++) {
        sb_attention_algorithm algorithm = way ? SB_ATTENTION_TILED : SB_ATTENTION_COMPOSED;
        expect_like_pairs(1, 5, algorithm);
        expect_like_pairs(3, 10, algorithm);
        expect_like_pairs(7, 70, algorithm);
        expect_like_pairs(64, 300, algorithm);
        expect_like_pairs(300, 280, algorithm);
    }
}
