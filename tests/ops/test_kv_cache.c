/* What decoding keeps between its steps. */
#include "ops/decoding.h"
#include "tests/support/compare.h"

static sb_tensor *own(sb_tensor *t)
{
    return sb_tape_own(t);
}

enum { B = 3, T = 37, H = 4, G = 2, D = 6, DV = 5 };

struct sequence {
    sb_tensor *q, *k, *v;
};

static struct sequence sequence_new(sb_dtype dtype)
{
    return (struct sequence){test_leaf(dtype, 1, SB_SHAPE(B, T, H, D)),
                             test_leaf(dtype, 2, SB_SHAPE(B, T, G, D)),
                             test_leaf(dtype, 3, SB_SHAPE(B, T, G, DV))};
}

/* Decodes `step` positions at a time with a cache; the joined results. */
static sb_tensor *decode(const struct sequence *s, int64_t step, sb_attention_options o)
{
    sb_kv_cache *cache = sb_kv_cache_new();
    sb_tensor *part[T];
    int n = 0;
    for (int64_t t = 0; t < T; t += step, n++) {
        int64_t L = T - t < step ? T - t : step;
        MUST(sb_kv_cache_append(cache, sb_slice(s->k, 1, t, L), sb_slice(s->v, 1, t, L)));
        cr_expect(sb_kv_cache_length(cache) == t + L && sb_kv_cache_batch(cache) == B);
        o.mask = sb_mask_causal_last();
        o.bias = sb_alibi(s->q->dtype, H, L, t + L);
        part[n] = sb_attention_cached(sb_slice(s->q, 1, t, L), cache, &o);
        MUST(part[n]);
    }
    sb_kv_cache_free(cache);
    return sb_concatenate(part, n, 1);
}

static void expect_decoding(sb_dtype dtype, sb_score score, double tolerance)
{
    for (int64_t step = 1; step <= T; step += test_slow() ? 18 : 6)
        for (int temperature = 0; temperature < 3; temperature++) {
            TAPE(SB_NO_RECORD);
            struct sequence s = sequence_new(dtype);
            sb_attention_options o = {.score = score, .temperature = temperature == 1 ? 0.6 : 0};
            if (temperature == 2)
                o.log_temperature = test_leaf(dtype, 4, SB_SHAPE(H));
            sb_tensor *y = decode(&s, step, o);
            o.mask = sb_mask_causal();
            o.bias = sb_alibi(dtype, H, T, T);
            sb_tensor *expected = sb_attention(s.q, s.k, s.v, &o);
            cr_expect(test_relative(y, expected) < tolerance, "score %d, step %d: %g", (int)score,
                      (int)step, test_relative(y, expected));
        }
}

TEST(kv_cache, decoding_step_by_step_equals_recomputing_the_prefix, WHOLE_MODELS)
{
    sb_set_threads(1); /* a second one would slow down many small calls */
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (sb_score score = SB_SCORE_SCALED; score <= SB_SCORE_COSINE; score++) {
            expect_decoding(SB_F64, score, 1e-12);
            expect_decoding(SB_F32, score, 1e-5);
        }
}

/* The norm of a key is that of sb_l2_normalize, also where squares overflow. */
TEST(kv_cache, cosines_of_large_keys_are_those_of_small_ones)
{
    TAPE(SB_NO_RECORD);
    struct sequence s = sequence_new(SB_F32);
    const sb_attention_options o = {.score = SB_SCORE_COSINE};
    sb_tensor *expected = decode(&s, T, o);
    s.k = sb_scale(s.k, 1e30);
    sb_tensor *y = decode(&s, T, o);
    cr_expect(test_relative(y, expected) < 1e-5, "%g", test_relative(y, expected));
}

/* Against the same numbers in f32, a rounding to bf16 apart; the kept weights too. */
TEST(kv_cache, bf16_is_f32_but_for_rounding)
{
    TAPE(SB_NO_RECORD);
    struct sequence s = sequence_new(SB_BF16);
    struct sequence wide = {sb_cast(s.q, SB_F32), sb_cast(s.k, SB_F32), sb_cast(s.v, SB_F32)};
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    sb_tensor *weights, *expected_weights;
    sb_attention_options o = {.weights = &weights, .mask = sb_mask_causal()};
    MUST(sb_kv_cache_append(cache, s.k, s.v));
    o.bias = test_leaf(SB_BF16, 4, SB_SHAPE(H, 1, T));
    sb_tensor *y = sb_attention_cached(s.q, cache, &o);
    MUST(y && weights);
    o.weights = &expected_weights;
    o.bias = sb_cast(o.bias, SB_F32);
    sb_tensor *expected = sb_attention(wide.q, wide.k, wide.v, &o);
    cr_expect(y->dtype == SB_BF16 && weights->dtype == SB_BF16);
    cr_expect(test_relative(y, expected) < 0x1p-7 &&
                  test_relative(weights, expected_weights) < 0x1p-7,
              "%g, %g", test_relative(y, expected), test_relative(weights, expected_weights));
}

/* q and the result may have heads first; weights always have the default layout. */
TEST(kv_cache, queries_may_have_either_layout)
{
    const int order[] = {0, 2, 1, 3};
    TAPE(SB_NO_RECORD);
    struct sequence s = sequence_new(SB_F32);
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    MUST(sb_kv_cache_append(cache, s.k, s.v));
    sb_tensor *weights[2];
    sb_attention_options o = {.weights = &weights[0]};
    sb_tensor *y = sb_attention_cached(s.q, cache, &o);
    o.layout = SB_LAYOUT_HEADS_FIRST;
    o.weights = &weights[1];
    sb_tensor *z = sb_attention_cached(sb_permute(s.q, 4, order), cache, &o);
    MUST(y && z);
    cr_expect(test_relative(sb_permute(z, 4, order), y) == 0);
    cr_expect(test_relative(weights[0], weights[1]) == 0);
    cr_expect(fabs(sb_tensor_value(sb_sum(weights[0], SB_ALL, false)) - B * H * T) < 1e-3);
    cr_expect(test_relative(y, sb_attention(s.q, s.k, s.v, NULL)) < 1e-5);
}

/* Sequence 1 alone, and in a batch with padding: the same bits. */
static void expect_the_same_bits_alone(int64_t L)
{
    TAPE(SB_NO_RECORD);
    struct sequence s = sequence_new(SB_F32);
    sb_kv_cache *all = KEPT(sb_kv_cache_new()), *one = KEPT(sb_kv_cache_new());
    sb_tensor *k = sb_slice(sb_slice(s.k, 0, 1, 1), 1, 0, L);
    sb_tensor *v = sb_slice(sb_slice(s.v, 0, 1, 1), 1, 0, L);
    sb_tensor *q = sb_slice(s.q, 1, 4, 2);
    cr_assert(sb_kv_cache_append(all, s.k, s.v) && sb_kv_cache_append(one, k, v));
    sb_tensor *lengths =
        own(sb_tensor_from_doubles(SB_I32, SB_SHAPE(B), (double[]){2, (double)L, T}));
    sb_attention_options o = {.mask = sb_mask_lengths(lengths)};
    sb_tensor *y = sb_slice(sb_attention_cached(q, all, &o), 0, 1, 1);
    sb_tensor *z = sb_attention_cached(sb_slice(q, 0, 1, 1), one, NULL);
    MUST(y && z);
    cr_expect(test_same_bits(y, z), "length %d", (int)L);
}

TEST(kv_cache, a_sequence_has_the_same_bits_alone_and_in_a_batch)
{
    for (struct sets s = sets_up_to(KERNELS_CPU_V4); next_set(&s);)
        for (int64_t L = 1; L <= T; L++)
            expect_the_same_bits_alone(L);
}

/* The contents of a cache: with q = 0 a query gives the mean of v over all keys. */
static void expect_mean(const sb_kv_cache *cache, int64_t batch, const double *expected)
{
    sb_tensor *q = own(sb_tensor_zeros(SB_F64, SB_SHAPE(batch, 1, 1, 1)));
    sb_tensor *y = MUST(sb_attention_cached(q, cache, NULL));
    for (int64_t b = 0; b < batch; b++)
        cr_expect(fabs(sb_tensor_get(y, b) - expected[b]) < 1e-12, "sequence %d holds %g", (int)b,
                  sb_tensor_get(y, b));
}

static bool append(sb_kv_cache *cache, int64_t batch, int64_t L, const double *v)
{
    sb_tensor *t = own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(batch, L, 1, 1), v));
    return sb_kv_cache_append(cache, t, t);
}

TEST(kv_cache, reordering_replaces_one_sequence_by_another)
{
    TAPE(SB_NO_RECORD);
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    MUST(append(cache, 3, 2, (double[]){1, 3, 10, 30, 100, 300}));
    expect_mean(cache, 3, (double[]){2, 20, 200});
    MUST(sb_kv_cache_reorder(cache, 3, (int32_t[]){2, 0, 0}));
    expect_mean(cache, 3, (double[]){200, 2, 2});
    MUST(sb_kv_cache_reorder(cache, 3, (int32_t[]){0, 1, 2}));
    expect_mean(cache, 3, (double[]){200, 2, 2});
    MUST(sb_kv_cache_reorder(cache, 5, (int32_t[]){1, 0, 1, 0, 0}));
    expect_mean(cache, 5, (double[]){2, 200, 2, 200, 200});
    MUST(append(cache, 5, 1, (double[]){5, 500, 8, 2, 50}));
    expect_mean(cache, 5, (double[]){3, 300, 4, 134, 150});
    MUST(sb_kv_cache_reorder(cache, 1, (int32_t[]){3}));
    expect_mean(cache, 1, (double[]){134});
}

TEST(kv_cache, truncating_removes_the_last_positions)
{
    TAPE(SB_NO_RECORD);
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    MUST(append(cache, 2, 3, (double[]){1, 3, 100, 10, 30, 200}));
    cr_assert(sb_kv_cache_truncate(cache, 2) && sb_kv_cache_length(cache) == 2);
    expect_mean(cache, 2, (double[]){2, 20});
    MUST(append(cache, 2, 1, (double[]){5, 50}));
    expect_mean(cache, 2, (double[]){3, 30});
    cr_assert(sb_kv_cache_truncate(cache, 0) && append(cache, 2, 1, (double[]){7, 8}));
    expect_mean(cache, 2, (double[]){7, 8});
}

/* 1,000 steps allocate only seven times: 16, 32, ..., 1024 positions. */
TEST(kv_cache, the_capacity_doubles)
{
    sb_tensor *k = test_leaf(SB_F32, 1, SB_SHAPE(2, 1, 1, 8));
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    int64_t held = 0, times = 0;
    for (int step = 0; step < 1000; step++) {
        MUST(sb_kv_cache_append(cache, k, k));
        int64_t bytes = memory_in_use().live_bytes;
        times += bytes != held;
        held = bytes;
    }
    cr_expect(times == 7, "%d times", (int)times);
}

#define WRONG(message, ...) REFUSED_ON_TAPE(SB_NO_RECORD, on_device(message), __VA_ARGS__)

TEST(kv_cache, wrong_arguments_are_named_and_do_not_change_the_cache)
{
    sb_tensor *k = test_leaf(SB_F32, 1, SB_SHAPE(2, 1, 3, 4)),
              *v = test_leaf(SB_F32, 1, SB_SHAPE(2, 1, 3, 5));
    sb_tensor *wide = test_leaf(SB_F64, 1, SB_SHAPE(2, 1, 3, 4)),
              *rank3 = test_leaf(SB_F32, 1, SB_SHAPE(2, 3, 4));
    sb_tensor *heads = test_leaf(SB_F32, 1, SB_SHAPE(2, 1, 1, 4)),
              *longer = test_leaf(SB_F32, 1, SB_SHAPE(2, 2, 3, 5));
    sb_kv_cache *cache = KEPT(sb_kv_cache_new());
    WRONG("attention_cached: the cache is empty", sb_attention_cached(k, cache, NULL));
    WRONG("attention_cached: cache is NULL", sb_attention_cached(k, NULL, NULL));
    WRONG("kv_cache_append: k is (2, 3, 4) of f32; it must be real and",
          sb_kv_cache_append(cache, rank3, rank3));
    WRONG("k is (2, 1, 3, 4) of f32, v is (2, 2, 3, 5) of f32; only",
          sb_kv_cache_append(cache, k, longer));
    WRONG("kv_cache_reorder: rows[0] is 0; the cache holds 0 sequences",
          sb_kv_cache_reorder(cache, 1, (int32_t[]){0}));
    MUST(sb_kv_cache_append(cache, k, v));
    REFUSED_ON_TAPE(SB_RECORD, "kv_cache_append: the open tape records",
                    sb_kv_cache_append(cache, k, v));
    REFUSED_ON_TAPE(SB_RECORD, "attention_cached: the open tape records",
                    sb_attention_cached(k, cache, NULL));
    WRONG("kv_cache_append: cache is NULL", sb_kv_cache_append(NULL, k, v));
    WRONG("kv_cache_append: k is NULL", sb_kv_cache_append(cache, NULL, v));
    WRONG("kv_cache_append: v is NULL", sb_kv_cache_append(cache, k, NULL));
    WRONG("k is of f64 on cpu; the cache holds f32 on cpu", sb_kv_cache_append(cache, wide, wide));
    WRONG("k is (2, 1, 1, 4); the cache holds 2 sequences of 3 heads of size 4",
          sb_kv_cache_append(cache, heads, heads));
    WRONG("v is (2, 1, 3, 4); the cache holds 2 sequences of 3 heads of",
          sb_kv_cache_append(cache, k, k));
    WRONG("attention_cached: q is NULL", sb_attention_cached(NULL, cache, NULL));
    WRONG("attention_cached: q is of f64 on cpu; the cache holds f32",
          sb_attention_cached(wide, cache, NULL));
    WRONG("they must have the same number of axes", sb_attention_cached(rank3, cache, NULL));
    WRONG("sizes of a head differ", sb_attention_cached(v, cache, NULL));
    WRONG("kv_cache_reorder: cache is NULL", sb_kv_cache_reorder(NULL, 0, NULL));
    WRONG("kv_cache_reorder: rows is NULL", sb_kv_cache_reorder(cache, 1, NULL));
    WRONG("kv_cache_reorder: n is -1", sb_kv_cache_reorder(cache, -1, (int32_t[]){0}));
    WRONG("rows[1] is 2; the cache holds 2", sb_kv_cache_reorder(cache, 2, (int32_t[]){0, 2}));
    WRONG("rows[0] is -1", sb_kv_cache_reorder(cache, 1, (int32_t[]){-1}));
    WRONG("kv_cache_truncate: length is 2; the cache holds 1 positions",
          sb_kv_cache_truncate(cache, 2));
    WRONG("kv_cache_truncate: length is -1", sb_kv_cache_truncate(cache, -1));
    WRONG("kv_cache_truncate: cache is NULL", sb_kv_cache_truncate(NULL, 0));
    cr_expect(sb_kv_cache_length(cache) == 1 && sb_kv_cache_batch(cache) == 2);
    cr_expect(sb_kv_cache_length(NULL) == 0 && sb_kv_cache_batch(NULL) == 0);
    sb_kv_cache_free(NULL);
}

/* The position is read from a tensor, and the mask excludes the rest of the capacity. */
TEST(kv_cache, a_position_on_the_device_stands_for_the_length, KNOWN_KERNELS)
{
    sb_kv_cache *usual = KEPT(sb_kv_cache_new()), *follows = KEPT(sb_kv_cache_new());
    sb_tensor *at = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), 0));
    sb_tensor *lengths = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(B), 0));
    TAPE(SB_NO_RECORD);
    const struct sequence s = sequence_new(SB_F64);
    MUST(sb_kv_cache_append(follows, sb_slice(s.k, 1, 0, 1), sb_slice(s.v, 1, 0, 1)) &&
         kv_cache_reserve(follows, T));
    cr_expect(kv_cache_room(follows) == 64, "%lld", (long long)kv_cache_room(follows));
    for (int64_t t = 0; t < T; t++) {
        sb_tensor *q = sb_slice(s.q, 1, t, 1), *k = sb_slice(s.k, 1, t, 1);
        sb_tensor *v = sb_slice(s.v, 1, t, 1);
        MUST(sb_kv_cache_append(usual, k, v));
        sb_tensor_set(at, 0, (double)t);
        for (int b = 0; b < B; b++)
            sb_tensor_set(lengths, b, (double)t + 1);
        kv_cache_follow(follows, at);
        MUST(sb_kv_cache_append(follows, k, v));
        const sb_attention_options masked = {.mask = sb_mask_lengths(lengths)};
        sb_tensor *expected = sb_attention_cached(q, usual, NULL);
        sb_tensor *y = sb_attention_cached(q, follows, &masked);
        MUST(y && expected);
        cr_expect(test_relative(y, expected) < 1e-14, "step %d: %g", (int)t,
                  test_relative(y, expected));
        kv_cache_follow(follows, NULL);
    }
    cr_expect(sb_kv_cache_length(follows) == 1);
    kv_cache_advance(follows, T - 1);
    cr_expect(sb_kv_cache_length(follows) == T);
}

static bool use(void *x)
{
    sb_kv_cache *cache = sb_kv_cache_new();
    bool ok = cache != NULL;
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    for (int i = 0; ok && i < 3; i++) { /* the third allocates more room */
        int64_t length = sb_kv_cache_length(cache);
        ok = sb_kv_cache_append(cache, x, x);
        cr_expect(sb_kv_cache_length(cache) == length + (ok ? 7 : 0));
    }
    ok = ok && sb_kv_cache_reorder(cache, 2, (int32_t[]){1, 0});
    ok = ok && sb_attention_cached(x, cache, NULL);
    ok = sb_tape_end(&tape) && ok;
    sb_kv_cache_free(cache);
    return ok;
}

TEST(kv_cache, each_allocation_may_fail)
{
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(2, 7, 1, 2));
    test_each_allocation_fails(use, x);
}

/* ---- decoding note ---- */

enum { SEQUENCES = 300, STEPS = 4 };

TEST(decoding_note, symbols_go_to_the_next_step_and_to_a_ring_for_the_host)
{
    int32_t best[SEQUENCES];
    float log_p[SEQUENCES];
    for (int b = 0; b < SEQUENCES; b++) {
        best[b] = 7 + b;
        log_p[b] = -0.5f * (float)b;
    }
    sb_tensor *chosen = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(SEQUENCES), best));
    sb_tensor *value = KEPT(sb_tensor_from(SB_F32, SB_SHAPE(SEQUENCES), log_p));
    sb_tensor *ids = KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(SEQUENCES)));
    sb_tensor *at = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), 6));
    sb_tensor *lengths = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(SEQUENCES), 7));
    sb_tensor *noted = KEPT(sb_tensor_full(SB_F64, SB_SHAPE(STEPS, SEQUENCES, 2), -1));
    const struct decoding_kernels *k = kernel_row(&decoding_rows, value);
    const struct decoding_note note = {SEQUENCES, STEPS,    chosen->data,  value->data,
                                       ids->data, at->data, lengths->data, noted->data};
    MUST(k && k->note(&note) && k->note(&note)); /* rows 2 and 3 */
    double *rows = numbers_of(noted);
    for (int i = 0; i < STEPS * SEQUENCES; i++) {
        const int b = i % SEQUENCES;
        const bool written = i / SEQUENCES >= 2;
        cr_assert(rows[2 * i] == (written ? best[b] : -1) &&
                      rows[2 * i + 1] == (written ? (double)log_p[b] : -1),
                  "row %d, sequence %d: %g, %g", i / SEQUENCES, b, rows[2 * i], rows[2 * i + 1]);
    }
    for (int b = 0; b < SEQUENCES; b += 43)
        cr_expect(sb_tensor_get(ids, b) == best[b] && sb_tensor_get(lengths, b) == 9);
    cr_expect(sb_tensor_get(at, 0) == 8);
}

/* A step of two beams of 2, with the symbols 2 (end) and 4 to 9, and what it must leave. */
enum { TEXTS = 2, WIDTH = 2, SLOTS = WIDTH + 1, READS = 5, ROWS = TEXTS * SLOTS, BEAM_STEPS = 3 };

static const int32_t best[ROWS * READS] = {0, 2, 4, 5, 6, 4, 2, 1, 7, 8, 4, 5, 6, 7, 8,
                                           2, 4, 0, 5, 6, 9, 8, 7, 6, 5, 9, 8, 7, 6, 5};
static const float log_p[ROWS * READS] = {
    -0.125f, -0.5f,  -1, -1, -4, -0.75f, -1, -1.5f, -2, -3, -0.5f, -0.5f, -1, -2, -3,
    -0.25f,  -0.75f, -1, -2, -3, -0.5f,  -1, -1.5f, -2, -3, -0.5f, -1,    -2, -3, -4};

static const struct {
    double before[ROWS], after[ROWS];
    int32_t greedy_before[TEXTS], greedy_after[TEXTS], from[ROWS], ids[ROWS];
} beams = {
    /* The first text: of equal ones the lower id first; greedy decoding's is not among the best
       two, and 6 not among the first three that are allowed. The second: greedy decoding ends. */
    .before = {-1, -2, -INFINITY, -1, -INFINITY, -INFINITY},
    .after = {-2, -2, -2.75, -1.75, -3, -INFINITY},
    .greedy_before = {1, 0},
    .greedy_after = {2, -1},
    .from = {0, 0, 1, 0, 0, 2},
    .ids = {4, 5, 4, 4, 5, 2},
};

static void expect_ids(const sb_tensor *t, int n, const int32_t *expected)
{
    double numbers[ROWS];
    for (int i = 0; i < n; i++)
        numbers[i] = expected[i];
    expect_numbers(t, n, numbers);
}

static void expect_noted(sb_tensor *noted, int64_t step)
{
    double *all = numbers_of(noted), *rows = all + step * ROWS * (2 + 2 * READS);
    for (int r = 0; r < ROWS; r++, rows += 2 + 2 * READS) {
        cr_expect(rows[0] == beams.from[r] && rows[1] == beams.ids[r], "row %d: %g, %g", r, rows[0],
                  rows[1]);
        for (int i = 0; i < READS; i++)
            cr_expect(rows[2 + 2 * i] == best[r * READS + i] &&
                          rows[3 + 2 * i] == (double)log_p[r * READS + i],
                      "row %d, symbol %d: %g, %g", r, i, rows[2 + 2 * i], rows[3 + 2 * i]);
    }
}

TEST(decoding_note, a_beam_keeps_its_most_probable_hypotheses_and_that_of_greedy_decoding)
{
    sb_tensor *t[] = {KEPT(sb_tensor_from(SB_I32, SB_SHAPE(ROWS, READS), best)),
                      KEPT(sb_tensor_from(SB_F32, SB_SHAPE(ROWS, READS), log_p)),
                      KEPT(sb_tensor_from(SB_F64, SB_SHAPE(ROWS), beams.before)),
                      KEPT(sb_tensor_from(SB_I32, SB_SHAPE(TEXTS), beams.greedy_before)),
                      KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(ROWS))),
                      KEPT(sb_tensor_zeros(SB_I32, SB_SHAPE(ROWS))),
                      KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), 4)),
                      KEPT(sb_tensor_full(SB_I32, SB_SHAPE(ROWS), 5)),
                      KEPT(sb_tensor_zeros(SB_F64, SB_SHAPE(BEAM_STEPS, ROWS, 2 + 2 * READS)))};
    const struct decoding_kernels *k = kernel_row(&decoding_rows, t[1]);
    const struct decoding_beam beam = {TEXTS,      WIDTH,      READS,      BEAM_STEPS, 2,
                                       4,          t[0]->data, t[1]->data, t[2]->data, t[3]->data,
                                       t[4]->data, t[5]->data, t[6]->data, t[7]->data, t[8]->data};
    MUST(k && k->extend(&beam));
    expect_numbers(t[2], ROWS, beams.after);
    expect_ids(t[3], TEXTS, beams.greedy_after);
    expect_ids(t[4], ROWS, beams.from);
    expect_ids(t[5], ROWS, beams.ids);
    expect_noted(t[8], 1); /* position 4 of a ring of 3 */
    cr_expect(sb_tensor_get(t[6], 0) == 5 && sb_tensor_get(t[7], ROWS - 1) == 6);
}

/* Caches whose positions have 3 and 8 numbers, so that most blocks are not aligned. */
TEST(decoding_note, caches_are_rearranged_in_place)
{
    enum { ROOM = 5, FILLED = 4 };
    static const int32_t from[ROWS] = {1, 2, 1, 0, 1, 0};
    static const int64_t sizes[] = {3, 8};
    sb_tensor *there = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(TEXTS, SLOTS), from));
    sb_tensor *filled = KEPT(sb_tensor_full(SB_I32, SB_SHAPE(1), FILLED)), *cache[2];
    struct decoding_caches caches = {TEXTS, SLOTS, there->data, filled->data, 2, {{0}}};
    for (int c = 0; c < 2; c++) {
        int32_t numbers[ROWS * ROOM * 8];
        for (int32_t i = 0; i < ROWS * ROOM * sizes[c]; i++)
            numbers[i] = i;
        cache[c] = KEPT(sb_tensor_from(SB_I32, SB_SHAPE(ROWS, ROOM, sizes[c]), numbers));
        caches.cache[c] =
            (struct decoding_cache){cache[c]->data, ROOM * sizes[c] * 4, sizes[c] * 4};
    }
    const struct decoding_kernels *k = kernel_row(&decoding_rows, there);
    MUST(k && k->rearrange(&caches));
    for (int c = 0; c < 2; c++)
        for (int64_t i = 0, of_row = ROOM * sizes[c]; i < ROWS * of_row; i++) {
            const int64_t row = i / of_row, inside = i % of_row,
                          was = row - row % SLOTS + from[row],
                          expected = inside < FILLED * sizes[c] ? was * of_row + inside : i;
            cr_expect(sb_tensor_get(cache[c], i) == (double)expected, "cache %d, %d: %g, not %d", c,
                      (int)i, sb_tensor_get(cache[c], i), (int)expected);
        }
}
