#include "tensor/hash.h"
#include "tests/support/tiny.h"
#include <stdio.h>

enum { PAIRS = 300 };

/* Different pairs "a...g" -> the number of the pair, in letters. */
static sb_pairs *pairs_new(void)
{
    sb_pairs *pairs = sb_pairs_new();
    for (int i = 0; i < PAIRS; i++) {
        char target[4] = {(char)('a' + i % 7), (char)('a' + i / 7 % 7), (char)('a' + i / 49), '\0'};
        cr_assert(sb_pairs_add(pairs, tiny_text((uint64_t)i, 20), target), "%s", sb_error());
    }
    return pairs;
}

static sb_data *data_new(const sb_data_options *options)
{
    sb_pairs *pairs = pairs_new();
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_data *data = sb_data_new(pairs, vocabulary, vocabulary, options);
    sb_vocabulary_release(vocabulary);
    sb_pairs_free(pairs);
    return data;
}

/* A hash of a batch. */
static uint64_t fingerprint(const sb_batch *batch)
{
    cr_assert(batch, "%s", sb_error());
    sb_tensor *parts[] = {sb_batch_get(batch, "source"), sb_batch_get(batch, "source_lengths"),
                          sb_batch_get(batch, "target_in"), sb_batch_get(batch, "target_out"),
                          sb_batch_get(batch, "target_lengths")};
    uint64_t hash = HASH_START;
    for (int p = 0; p < 5; p++)
        hash =
            hash_add(hash, test_data(parts[p]), (size_t)sb_tensor_size(parts[p]) * sizeof(int32_t));
    return hash;
}

TEST(data, an_epoch_has_each_pair_once)
{
    sb_data_options options = {.seed = 3, .batch_pairs = 7};
    sb_data *data = KEPT(data_new(&options));
    cr_assert(data, "%s", sb_error());
    cr_expect(sb_data_pairs(data) == PAIRS && sb_data_left_out(data) == 0);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[PAIRS] = {0}, met = 0;
        while (sb_data_tell(data).epoch == epoch) {
            const sb_batch *batch = sb_data_next(data);
            cr_assert(batch && batch->items <= 7, "%s", sb_error());
            const int32_t *out = test_data(sb_batch_get(batch, "target_out"));
            for (int64_t b = 0; b < batch->items; b++, met++) {
                const int32_t *id = out + b * sb_tensor_dim(sb_batch_get(batch, "target_out"), 1);
                seen[(id[0] - 4) + 7 * (id[1] - 4) + 49 * (id[2] - 4)]++;
            }
        }
        cr_expect(met == PAIRS);
        for (int i = 0; i < PAIRS; i++)
            cr_assert(seen[i] == 1, "pair %d occurs %d times", i, seen[i]);
    }
}

TEST(data, the_order_is_fixed_by_the_seed)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        sb_data_options one = {.seed = 1}, other = {.seed = seed};
        sb_data *x = KEPT(data_new(&one)), *y = KEPT(data_new(&other));
        int same = 0;
        for (int i = 0; i < 20; i++)
            same += fingerprint(sb_data_next(x)) == fingerprint(sb_data_next(y));
        cr_expect(same == (seed == 1 ? 20 : 0), "seed %d: %d batches are the same", (int)seed,
                  same);
    }
}

static void expect_replay(sb_data *data, sb_data *other)
{
    enum { BATCHES = 40 };
    uint64_t met[BATCHES];
    sb_data_position at[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        at[i] = sb_data_tell(data);
        met[i] = fingerprint(sb_data_next(data));
    }
    for (int i = BATCHES - 1; i >= 0; i -= 7) {
        cr_assert(sb_data_seek(other, at[i]), "%s", sb_error());
        sb_data_position told = sb_data_tell(other);
        cr_expect(told.epoch == at[i].epoch && told.batch == at[i].batch);
        for (int k = i; k < BATCHES; k++)
            cr_assert(fingerprint(sb_data_next(other)) == met[k], "batch %d after a seek to %d", k,
                      i);
    }
    sb_data_free(data);
    sb_data_free(other);
}

TEST(data, a_seek_repeats_the_batches_that_follow)
{
    sb_data_options options = {.seed = 3, .batch_pairs = 20}; /* the seeks also change the epoch */
    expect_replay(data_new(&options), data_new(&options));
    expect_replay(sb_data_task("reverse", 5), sb_data_task("reverse", 5));
}

TEST(data, a_seek_beyond_the_end_is_refused)
{
    sb_data_options options = {.seed = 3, .batch_pairs = 20};
    sb_data *data = KEPT(data_new(&options)), *task = KEPT(sb_data_task("copy", 1));
    uint64_t first = fingerprint(sb_data_next(data));
    int64_t batches = sb_data_batches(data);
    cr_expect(batches >= PAIRS / 20);
    cr_expect(!sb_data_seek(data, (sb_data_position){0, batches}));
    EXPECT_ERROR("data_seek: there is no batch");
    cr_expect(!sb_data_seek(data, (sb_data_position){-1, 0}));
    cr_expect(!sb_data_seek(data, (sb_data_position){0, -1}));
    cr_expect(!sb_data_seek(task, (sb_data_position){1, 0}));
    cr_expect(!sb_data_seek(NULL, (sb_data_position){0, 0}));
    cr_expect(sb_data_tell(data).batch == 1 && sb_data_tell(data).epoch == 0);
    cr_expect(sb_data_seek(data, (sb_data_position){0, 0}));
    cr_expect(fingerprint(sb_data_next(data)) == first);
}

TEST(data, long_pairs_are_skipped)
{
    sb_data_options options = {.longest = 10}, none = {.longest = 2};
    sb_data *data = data_new(&options);
    int64_t within = 0;
    for (int i = 0; i < PAIRS; i++)
        within += strlen(tiny_text((uint64_t)i, 20)) <= 10;
    cr_expect(within > 0 && within < PAIRS);
    cr_expect(sb_data_pairs(data) == within && sb_data_left_out(data) == PAIRS - within);
    for (int64_t met = 0; met < within; met += sb_data_next(data)->items)
        ;
    cr_expect(sb_data_tell(data).epoch == 1 && sb_data_tell(data).batch == 0);
    sb_data_free(data);
    cr_expect(!data_new(&none));
    EXPECT_ERROR("data: none of 300 pairs has at most 2 symbols on each side");
}

TEST(data, a_task_never_ends)
{
    static const char *const names[] = {"copy", "reverse", "sort", "addition", "dates"};
    for (int i = 0; i < 5; i++) {
        sb_data *data = KEPT(sb_data_task(names[i], 1));
        cr_assert(data, "%s", sb_error());
        cr_expect(sb_data_pairs(data) == 0 && sb_data_batches(data) == 0);
        uint64_t before = 0;
        for (int b = 0; b < 5; b++) {
            const sb_batch *batch = sb_data_next(data);
            cr_assert(batch && batch->items == 64, "%s", sb_error());
            cr_expect(fingerprint(batch) != before, "%s: a batch is repeated", names[i]);
            before = fingerprint(batch);
            const int32_t *source = test_data(sb_batch_get(batch, "source"));
            for (int64_t k = 0; k < sb_tensor_size(sb_batch_get(batch, "source")); k++)
                cr_assert(source[k] != SB_SYMBOL_UNKNOWN, "%s has unknown symbols", names[i]);
        }
    }
    cr_expect(!sb_data_task("translate", 1));
    EXPECT_ERROR("none of copy, reverse");
}

CPU_TEST(data, wrong_options_are_refused)
{
    sb_data_options wrong[] = {{.batch_pairs = -1}, {.batch_symbols = -1}, {.longest = -1}};
    for (int i = 0; i < 3; i++) {
        cr_expect(!data_new(&wrong[i]));
        EXPECT_ERROR("is negative");
    }
    cr_expect(!sb_data_new(NULL, NULL, NULL, NULL) && !sb_data_next(NULL));
    EXPECT_ERROR("data_next: data is NULL");
}

static bool make_and_read(void *context)
{
    sb_vocabulary *vocabulary = context;
    sb_pairs *pairs = sb_pairs_new();
    bool ok = pairs && sb_pairs_add(pairs, "abc", "d") && sb_pairs_add(pairs, "efg", "");
    sb_data *data = ok ? sb_data_new(pairs, vocabulary, vocabulary, NULL) : NULL;
    ok = ok && data && sb_data_next(data) && sb_data_next(data);
    sb_data_free(data);
    sb_pairs_free(pairs);
    return ok;
}

TEST(data, each_allocation_may_fail)
{
    sb_vocabulary *vocabulary = KEPT(tiny_vocabulary());
    cr_expect(test_each_allocation_fails(make_and_read, vocabulary) > 15);
}

/* Whether two sets of data have one hash. */
static bool same_hash(const sb_data_options *a, const sb_data_options *b)
{
    sb_data *one = data_new(a), *two = data_new(b);
    cr_assert(one && two, "%s", sb_error());
    const sb_source source = sb_data_as_source(two);
    const bool same = sb_data_hash(one) == source.hash(source.object);
    sb_data_free(one);
    sb_data_free(two);
    return same;
}

CPU_TEST(data, different_batches_have_different_hashes)
{
    const sb_data_options usual = {.seed = 3, .batch_pairs = 7},
                          other = {.seed = 4, .batch_pairs = 7};
    const sb_data_options smaller = {.seed = 3, .batch_pairs = 6};
    cr_expect(same_hash(&usual, &usual));
    cr_expect(!same_hash(&usual, &other));
    cr_expect(!same_hash(&usual, &smaller));
    sb_data *copy = KEPT(sb_data_task("copy", 1)), *sort = KEPT(sb_data_task("sort", 1));
    cr_expect(sb_data_hash(copy) != sb_data_hash(sort));
}
