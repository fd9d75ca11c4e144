#include "tensor/philox.h"
#include "tests/support/test.h"
#include <stdio.h>

/* A leaf of n ones. */
static sb_tensor *ones(sb_dtype dtype, int64_t n)
{
    return sb_tensor_requires_grad(sb_tensor_full(dtype, SB_SHAPE(n), 1));
}

/* y of dropout at this position of a stream; to be released. */
static sb_tensor *drop(sb_tensor *x, double p, sb_random random)
{
    TAPE(SB_NO_RECORD);
    sb_tape_random(&tape, &random);
    return MUST(retained(sb_dropout(x, p)));
}

static double fraction_of_zeros(const sb_tensor *x)
{
    int64_t zeros = 0, n = sb_tensor_size(x);
    for (int64_t i = 0; i < n; i++)
        zeros += sb_tensor_get(x, i) == 0;
    return (double)zeros / (double)n;
}

/* Philox4x32-10 of key 0, counter 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (Random123's known
   answers): halves e8d5 6627 c58d e169 ac4c bc57 dbd8 9b00, against p 2^16 = 8000 and c000. */
TEST(dropout, the_published_random_bits_decide)
{
    const bool half[] = {0, 1, 0, 0, 0, 0, 0, 0}, most[] = {0, 1, 0, 0, 1, 1, 0, 1};
    sb_tensor *x = KEPT(ones(SB_F64, 8));
    sb_tensor *y = drop(x, 0.5, (sb_random){0, 0}), *z = drop(x, 0.75, (sb_random){0, 0});
    for (int i = 0; i < 8; i++) {
        cr_expect(sb_tensor_get(y, i) == (half[i] ? 0 : 2), "element %d", i);
        cr_expect(sb_tensor_get(z, i) == (most[i] ? 0 : 4), "element %d", i);
    }
}

/* Elements of all chunks, in both dtypes and with each set of kernels, against philox(). */
TEST(dropout, every_element_has_its_own_sixteen_bits)
{
    const int64_t lengths[] = {1, 7, 8, 9, 255, 256, 257, 1000};
    const sb_random random = {0x123456789abcdef, ((uint64_t)SB_STREAM_TRAIN << 48) + 77};
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int n = 0; n < 16; n++) {
            sb_tensor *x = KEPT(ones(n % 2 ? SB_F64 : SB_F32, lengths[n / 2]));
            sb_tensor *y = drop(x, 0.3, random);
            for (int64_t i = 0; i < lengths[n / 2]; i++) {
                struct philox draw = philox(random.seed, random.position, (uint64_t)i / 8);
                uint32_t bits = draw.word[i % 8 / 2] >> (i % 2 ? 16 : 0) & 0xffff;
                cr_expect((sb_tensor_get(y, i) == 0) == (bits < 0.3 * 65536), "element %d", (int)i);
            }
        }
}

/* Four standard deviations of a fraction p of 100,000 are below 0.0064. */
TEST(dropout, a_fraction_p_is_dropped_and_the_mean_is_kept)
{
    sb_tensor *x = KEPT(ones(SB_F32, 100000));
    const double p[] = {0.1, 0.5, 0.9};
    for (int i = 0; i < 3; i++) {
        sb_tensor *y = drop(x, p[i], sb_random_new(5, SB_STREAM_TRAIN));
        double zeros = fraction_of_zeros(y);
        cr_expect(fabs(zeros - p[i]) < 0.0064, "%g of %g", zeros, p[i]);
        for (int64_t e = 0; e < 1000; e++)
            cr_expect(sb_tensor_get(y, e) == 0 ||
                      fabs(sb_tensor_get(y, e) - 1 / (1 - p[i])) < 1e-6);
    }
}

/* Two calls, two streams and two seeds drop the same element as often as by chance. */
TEST(dropout, calls_streams_and_seeds_are_independent)
{
    sb_tensor *x = KEPT(ones(SB_F32, 100000));
    sb_random next = sb_random_new(5, SB_STREAM_TRAIN), other = sb_random_new(5, SB_STREAM_USER);
    next.position++;
    const sb_random streams[] = {sb_random_new(5, SB_STREAM_TRAIN), next, other,
                                 sb_random_new(6, SB_STREAM_TRAIN)};
    sb_tensor *y[4];
    for (int i = 0; i < 4; i++)
        y[i] = drop(x, 0.5, streams[i]);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            int both = 0;
            for (int64_t e = 0; e < 100000; e++)
                both += sb_tensor_get(y[i], e) == 0 && sb_tensor_get(y[j], e) == 0;
            cr_expect(abs(both - 25000) < 4 * 137, "%d of streams %d and %d", both, i, j);
        }
}

TEST(dropout, backward_drops_what_forward_dropped)
{
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    sb_tensor *x = KEPT(ones(SB_F64, 1000)), *dy = test_leaf(SB_F64, 1, SB_SHAPE(1000));
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_keep(sb_dropout(x, 0.4));
    MUST(sb_backward_from(y, dy));
    for (int i = 0; i < 1000; i++)
        cr_expect(fabs(sb_tensor_get(sb_tensor_grad(x), i) -
                       sb_tensor_get(y, i) * sb_tensor_get(dy, i)) < 1e-15);
}

/* Dropped elements are 0, even if x is NaN; the others are only scaled. */
TEST(dropout, a_dropped_nan_is_zero_and_a_kept_one_propagates)
{
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    sb_tensor *x = KEPT(sb_tensor_requires_grad(sb_tensor_full(SB_F32, SB_SHAPE(100), NAN)));
    sb_tensor *dy = KEPT(sb_tensor_full(SB_F32, SB_SHAPE(100), INFINITY));
    TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *y = sb_keep(sb_dropout(x, 0.5));
    MUST(sb_backward_from(y, dy));
    int dropped = 0;
    for (int i = 0; i < 100; i++) {
        dropped += sb_tensor_get(y, i) == 0;
        cr_expect((sb_tensor_get(y, i) == 0) == (sb_tensor_get(sb_tensor_grad(x), i) == 0));
        cr_expect(sb_tensor_get(y, i) == 0 || isnan(sb_tensor_get(y, i)));
    }
    cr_expect(dropped > 20 && dropped < 80);
}

/* Each operation that drops. A tape that does not record needs no stream. */
TEST(dropout, a_tape_that_records_needs_a_stream)
{
    static const char *const names[] = {"dropout", "residual_dropout", "residual_layer_norm",
                                        "attention"};
    sb_tensor *x = KEPT(ones(SB_F32, 3)),
              *q = KEPT(sb_tensor_full(SB_F32, SB_SHAPE(1, 2, 1, 4), 1));
    const sb_attention_options o = {.dropout = 0.5};
    for (int i = 0; i < 8; i++) {
        sb_tape tape;
        sb_tape_begin(&tape, i < 4 ? SB_RECORD : SB_NO_RECORD);
        sb_tensor *sum, *y = i % 4 == 0   ? sb_dropout(x, 0.5)
                             : i % 4 == 1 ? sb_residual_dropout(x, x, 0.5)
                             : i % 4 == 2 ? sb_residual_layer_norm(x, x, 0.5, x, NULL, 0, &sum)
                                          : sb_attention(q, q, q, &o);
        char expected[160];
        snprintf(expected, sizeof expected,
                 "%s: the probability to drop is 0.5, but the tape records and has no random "
                 "stream; give it one",
                 names[i % 4]);
        cr_expect((y != NULL) == (i >= 4), "%s: %s", names[i % 4], sb_error());
        if (i < 4)
            EXPECT_ERROR(expected);
        cr_expect(sb_tape_end(&tape) == (i >= 4));
    }
}

TEST(dropout, one_call_uses_one_position_of_the_stream)
{
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    uint64_t begin = random.position;
    sb_tensor *x = KEPT(ones(SB_F32, 3));
    TAPE(SB_RECORD);
    sb_tape_random(&tape, NULL);
    cr_expect(sb_dropout(x, 0.5) == x, "without a stream it is the identity");
    sb_tape_random(&tape, &random);
    cr_expect(sb_dropout(x, 0) == x && random.position == begin, "with p = 0 too");
    cr_expect(test_relative(sb_residual_dropout(x, x, 0), sb_add(x, x)) == 0);
    cr_expect(random.position == begin);
    cr_expect(sb_dropout(x, 0.5) && random.position == begin + 1);
    cr_expect(sb_residual_dropout(x, x, 0.5) && random.position == begin + 2);
}

static sb_tensor *residual(sb_tensor *x, sb_tensor *branch, bool composed)
{
    return composed ? sb_add(x, sb_dropout(branch, 0.3)) : sb_residual_dropout(x, branch, 0.3);
}

/* Also for x = branch, whose gradient has two parts, and with an existing gradient. */
TEST(dropout, residual_dropout_is_dropout_and_add)
{
    for (int same = 0; same < 2; same++) {
        sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(3, 300)), *y[2], *dx[2], *dbranch[2];
        sb_tensor *branch = same ? retained(x) : test_leaf(SB_F64, 2, SB_SHAPE(3, 300));
        sb_tensor *dy = test_leaf(SB_F64, 3, SB_SHAPE(3, 300));
        for (int way = 0; way < 2; way++) {
            sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
            TAPE(SB_RECORD);
            sb_tape_random(&tape, &random);
            y[way] = retained(sb_keep(residual(x, branch, way)));
            sb_tensor *sum = sb_add(y[way], residual(x, branch, way));
            MUST(sb_backward_from(sum, dy));
            dx[way] = retained(sb_tensor_grad(x));
            dbranch[way] = retained(sb_tensor_grad(branch));
            sb_tensor_clear_grad(x);
            sb_tensor_clear_grad(branch);
        }
        cr_expect(test_relative(y[0], y[1]) < 1e-15);
        cr_expect(test_relative(dx[0], dx[1]) < 1e-15);
        cr_expect(test_relative(dbranch[0], dbranch[1]) < 1e-15);
    }
}

CPU_TEST(dropout, any_number_of_threads_gives_the_same_bits)
{
    int usual = sb_threads();
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(100001)), *y[3];
    for (int i = 0; i < 3; i++) {
        sb_set_threads(1 + 2 * i);
        y[i] = drop(x, 0.2, sb_random_new(5, SB_STREAM_TRAIN));
        cr_expect(test_same_bits(y[i], y[0]));
    }
    sb_set_threads(usual);
}

TEST(dropout, a_call_that_fails_takes_no_position)
{
    sb_random random = sb_random_new(5, SB_STREAM_TRAIN);
    const uint64_t begin = random.position;
    FAILED_TAPE(SB_RECORD);
    sb_tape_random(&tape, &random);
    sb_tensor *x = sb_tape_own(ones(SB_F32, 3)), *y = sb_tape_own(ones(SB_F32, 4));
    cr_expect(!sb_dropout(x, 1) && !sb_residual_dropout(x, y, 0.5));
    cr_expect(random.position == begin);
}
