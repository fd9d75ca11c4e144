/* Data of training: pairs, epochs, and windows of documents. */
#include "models/data/batch_parts.h"
#include "models/data/cursor.h"
#include "tensor/hash.h"
#include "tests/support/tiny.h"

enum { PAIRS = 300 };

/* Different pairs "a...g" -> the number of the pair, in letters. */
static sb_pairs *pairs_new(void)
{
    sb_pairs *pairs = sb_pairs_new();
    for (int i = 0; i < PAIRS; i++) {
        char target[4] = {(char)('a' + i % 7), (char)('a' + i / 7 % 7), (char)('a' + i / 49), '\0'};
        MUST(sb_pairs_add(pairs, tiny_text((uint64_t)i, 20), target));
    }
    return KEPT(pairs);
}

static sb_data *data_new(const sb_data_options *options)
{
    sb_pairs *pairs = pairs_new();
    sb_vocabulary *vocabulary = tiny_vocabulary();
    return sb_data_new(pairs, vocabulary, vocabulary, options);
}

/* A hash of a batch. */
static uint64_t fingerprint(const sb_batch *batch)
{
    MUST(batch);
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
    cr_expect(sb_data_pairs(data) == PAIRS && sb_data_left_out(data) == 0);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[PAIRS] = {0}, met = 0;
        while (sb_data_tell(data).epoch == epoch) {
            const sb_batch *batch = sb_data_next(data);
            MUST(batch && batch->items <= 7);
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
        MUST(sb_data_seek(other, at[i]));
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
    REFUSED("data_seek: there is no batch", sb_data_seek(data, (sb_data_position){0, batches}));
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
    REFUSED("data: none of 300 pairs has at most 2 symbols on each side", data_new(&none));
}

TEST(data, a_task_never_ends)
{
    static const char *const names[] = {"copy", "reverse", "sort", "addition", "dates"};
    for (int i = 0; i < 5; i++) {
        sb_data *data = KEPT(sb_data_task(names[i], 1));
        cr_expect(sb_data_pairs(data) == 0 && sb_data_batches(data) == 0);
        uint64_t before = 0;
        for (int b = 0; b < 5; b++) {
            const sb_batch *batch = sb_data_next(data);
            MUST(batch && batch->items == 64);
            cr_expect(fingerprint(batch) != before, "%s: a batch is repeated", names[i]);
            before = fingerprint(batch);
            const int32_t *source = test_data(sb_batch_get(batch, "source"));
            for (int64_t k = 0; k < sb_tensor_size(sb_batch_get(batch, "source")); k++)
                cr_assert(source[k] != SB_SYMBOL_UNKNOWN, "%s has unknown symbols", names[i]);
        }
    }
    REFUSED("none of copy, reverse", sb_data_task("translate", 1));
}

CPU_TEST(data, wrong_options_are_refused)
{
    sb_data_options wrong[] = {{.batch_pairs = -1}, {.batch_symbols = -1}, {.longest = -1}};
    for (int i = 0; i < 3; i++)
        REFUSED("is negative", data_new(&wrong[i]));
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
    sb_vocabulary *vocabulary = tiny_vocabulary();
    cr_expect(test_each_allocation_fails(make_and_read, vocabulary) > 15);
}

/* Whether two sets of data have one hash. */
static bool same_hash(const sb_data_options *a, const sb_data_options *b)
{
    sb_data *one = KEPT(data_new(a)), *two = KEPT(data_new(b));
    MUST(one && two);
    const sb_source source = sb_data_as_source(two);
    return sb_data_hash(one) == source.hash(source.object);
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

static const int32_t a[] = {4, 5, 6}, b[] = {7}, c[] = {8, 9};

/* The row holds these ids and then `rest`, up to its length. Where steps of one shape are launched
   as one graph, lengths are padded to multiples of eight. */
static void expect_row(sb_tensor *t, int64_t row, int n, const int32_t *expected, int32_t rest)
{
    const int32_t *ids = test_data(t);
    const int64_t length = sb_device_in_use()->graphs ? (n + 7) / 8 * 8 : n;
    cr_assert(sb_tensor_dim(t, 1) == length, "rows have %lld entries",
              (long long)sb_tensor_dim(t, 1));
    for (int64_t i = 0; i < length; i++)
        cr_expect(ids[row * length + i] == (i < n ? expected[i] : rest), "entry %d is %d", (int)i,
                  ids[row * length + i]);
}

CPU_TEST(batch, pairs_are_padded_and_targets_shifted)
{
    on_the_cpu(); /* elsewhere lengths are padded further */
    const sb_encoded_pair pairs[] = {{a, b, 3, 1, NULL}, {c, c, 2, 2, NULL}};
    sb_batch *batch = KEPT(sb_batch_new(2, pairs));
    cr_expect(batch->items == 2 && batch->targets == 5);
    expect_row(sb_batch_get(batch, "source"), 0, 3, (int32_t[]){4, 5, 6}, SB_SYMBOL_PADDING);
    expect_row(sb_batch_get(batch, "source"), 1, 3, (int32_t[]){8, 9, SB_SYMBOL_PADDING},
               SB_SYMBOL_PADDING);
    expect_row(sb_batch_get(batch, "target_in"), 0, 3,
               (int32_t[]){SB_SYMBOL_BEGIN, 7, SB_SYMBOL_PADDING}, SB_SYMBOL_PADDING);
    expect_row(sb_batch_get(batch, "target_in"), 1, 3, (int32_t[]){SB_SYMBOL_BEGIN, 8, 9},
               SB_SYMBOL_PADDING);
    expect_row(sb_batch_get(batch, "target_out"), 0, 3, (int32_t[]){7, SB_SYMBOL_END, -1}, -1);
    expect_row(sb_batch_get(batch, "target_out"), 1, 3, (int32_t[]){8, 9, SB_SYMBOL_END}, -1);
    const int32_t *source = test_data(sb_batch_get(batch, "source_lengths"));
    const int32_t *target = test_data(sb_batch_get(batch, "target_lengths"));
    cr_expect(source[0] == 3 && source[1] == 2 && target[0] == 2 && target[1] == 3);
}

/* A query needs at least one key. */
CPU_TEST(batch, an_empty_source_has_one_symbol_of_padding)
{
    on_the_cpu();
    const sb_encoded_pair pairs[] = {{a, a, 0, 0, NULL}, {b, a, 0, 3, NULL}};
    sb_batch *batch = KEPT(sb_batch_new(2, pairs));
    expect_row(sb_batch_get(batch, "source"), 0, 1, (int32_t[]){SB_SYMBOL_PADDING},
               SB_SYMBOL_PADDING);
    const int32_t *lengths = test_data(sb_batch_get(batch, "source_lengths"));
    cr_expect(lengths[0] == 1 && lengths[1] == 1);
    expect_row(
        sb_batch_get(batch, "target_in"), 0, 4,
        (int32_t[]){SB_SYMBOL_BEGIN, SB_SYMBOL_PADDING, SB_SYMBOL_PADDING, SB_SYMBOL_PADDING},
        SB_SYMBOL_PADDING);
    expect_row(sb_batch_get(batch, "target_out"), 0, 4, (int32_t[]){SB_SYMBOL_END, -1, -1, -1}, -1);
    cr_expect(batch->targets == 5);
}

/* A rank's share, of which threads take shares. */
CPU_TEST(batch, a_share_leaves_out_padding_and_keeps_its_place)
{
    on_the_cpu();
    const sb_encoded_pair pairs[] = {{a, b, 3, 1, NULL}, {b, c, 1, 2, NULL}, {c, b, 2, 1, NULL}};
    const sb_batch *batch = KEPT(sb_batch_new(3, pairs));
    struct batch_share ranks, threads;
    MUST(batch && batch_share_take(&ranks, batch, 1, 2) && batch_share_trim(&ranks));
    expect_row(sb_batch_get(&ranks.batch, "source"), 0, 2, (int32_t[]){7, SB_SYMBOL_PADDING}, 0);
    expect_row(sb_batch_get(&ranks.batch, "source"), 1, 2, c, 0);
    cr_expect(ranks.place.source.of == 3 && ranks.place.target.of == 0, "%lld and %lld",
              (long long)ranks.place.source.of, (long long)ranks.place.target.of);
    cr_assert(batch_share_take(&threads, &ranks.batch, 1, 2) && batch_share_trim(&threads));
    expect_row(sb_batch_get(&threads.batch, "source"), 0, 2, c, 0);
    expect_row(sb_batch_get(&threads.batch, "target_out"), 0, 2, (int32_t[]){7, SB_SYMBOL_END}, 0);
    cr_expect(threads.place.items.first == 2 && threads.place.items.of == 3);
    cr_expect(threads.place.source.of == 3 && threads.place.target.of == 3);
    batch_share_release(&threads);
    batch_share_release(&ranks);
}

CPU_TEST(batch, an_empty_batch_is_refused)
{
    const sb_encoded_pair pair = {a, b, 3, 1, NULL};
    REFUSED("batch: n is 0; it must be at least 1", sb_batch_new(0, &pair));
    REFUSED("batch: pairs is NULL", sb_batch_new(1, NULL));
    sb_batch_free(NULL);
}

static bool make(void *context)
{
    sb_batch *batch = sb_batch_new(1, context);
    sb_batch_free(batch);
    return batch != NULL;
}

TEST(batch, each_allocation_may_fail)
{
    sb_encoded_pair pair = {a, b, 3, 1, NULL};
    cr_expect(test_each_allocation_fails(make, &pair) > 5);
}

/* Each source of batches, through the functions that a trainer calls. */

enum { SOURCES = 4, ITEMS = 40 };

/* A built-in task, pairs, labelled texts, windows. */
struct sources {
    sb_data *task, *data;
    sb_labelled *labelled;
    sb_windows *windows;
    sb_source at[SOURCES];
};

static void sources_open(struct sources *s)
{
    const sb_data_options options = {.seed = 5, .batch_pairs = 4, .batch_symbols = 64};
    const sb_windows_options cuts = {.seed = 5, .length = 6, .batch_windows = 4};
    const char *const names[] = {"a", "b", "c"};
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_labels *labels = KEPT(sb_labels_new(names, 3));
    sb_pairs *pairs = KEPT(sb_pairs_new());
    sb_documents *documents = KEPT(sb_documents_new());
    for (int i = 0; i < ITEMS; i++) {
        const char *text = tiny_text((uint64_t)i, 20);
        cr_assert(sb_pairs_add(pairs, text, names[i % 3]));
        cr_assert(!*text ||
                  sb_documents_add(documents, "text", text, strlen(text), SB_DOCUMENTS_FILES));
    }
    s->task = KEPT(sb_data_task("sort", 5));
    s->data = KEPT(sb_data_new(pairs, vocabulary, vocabulary, &options));
    s->labelled = KEPT(sb_labelled_new(pairs, vocabulary, labels, &options));
    s->windows = KEPT(sb_windows_new(documents, vocabulary, &cuts));
    s->at[0] = sb_data_as_source(s->task);
    s->at[1] = sb_data_as_source(s->data);
    s->at[2] = sb_labelled_as_source(s->labelled);
    s->at[3] = sb_windows_as_source(s->windows);
}

/* States of training contain them, and a resumed run compares them. */
CPU_TEST(cursor, hashes_of_data_never_change)
{
    static const uint64_t stored[SOURCES] = {0x6b44881254af27d2, 0x2188846de35115db,
                                             0x1b81de5e7950fda5, 0x776a43a4225d7cba};
    struct sources s;
    sources_open(&s);
    for (int i = 0; i < SOURCES; i++)
        cr_expect(s.at[i].hash(s.at[i].object) == stored[i], "source %d: %llx", i,
                  (unsigned long long)s.at[i].hash(s.at[i].object));
}

static uint64_t batch_hash(const sb_source *source)
{
    const sb_batch *batch = source->next(source->object);
    uint64_t hash = HASH_START;
    MUST(batch);
    for (int p = 0; p < batch->parts; p++)
        hash = hash_add(hash, test_data(batch->part[p].t),
                        4 * (size_t)sb_tensor_size(batch->part[p].t));
    return hash;
}

static bool go_to_epoch_1(void *source_)
{
    const sb_source *source = source_;
    const bool there = source->seek(source->object, (sb_data_position){1, 2});
    return there && source->seek(source->object, (sb_data_position){0, 3});
}

TEST(cursor, a_failed_seek_leaves_the_next_batch_as_it_was)
{
    struct sources s;
    sources_open(&s);
    for (int i = 1; i < SOURCES; i++) {
        const sb_source *source = &s.at[i];
        cr_assert(source->seek(source->object, (sb_data_position){0, 3}));
        const uint64_t before = batch_hash(source);
        cr_assert(source->seek(source->object, (sb_data_position){0, 3}));
        cr_expect(test_each_allocation_fails(go_to_epoch_1, (void *)(uintptr_t)source) > 4);
        cr_expect(!source->seek(source->object, (sb_data_position){2, 1000}));
        const sb_data_position place = source->tell(source->object);
        cr_expect(place.epoch == 0 && place.batch == 3);
        cr_expect(batch_hash(source) == before, "source %d", i);
    }
}

/* ---- epoch ---- */

enum { EPOCH_PAIRS = 5000, LONGEST = 60 };

/* Pairs of all lengths, fixed by the seed; only the lengths are used. */
static sb_encoded_pair *pairs_of(int64_t n)
{
    sb_random random = sb_random_new(7, SB_STREAM_USER);
    sb_encoded_pair *pairs = KEPT(calloc((size_t)n, sizeof *pairs));
    for (int64_t i = 0; i < n; i++) {
        pairs[i].source_length = sb_random_below(&random, LONGEST);
        pairs[i].target_length = sb_random_below(&random, LONGEST);
    }
    return pairs;
}

static struct epoch planned(int64_t n, const sb_encoded_pair *pairs, struct epoch_limits limits,
                            uint64_t seed, int64_t number)
{
    struct epoch epoch;
    MUST(epoch_plan(&epoch, n, pairs, limits, seed, number));
    return epoch;
}

static const struct epoch_limits usual = {16, 700};

CPU_TEST(epoch, each_pair_occurs_exactly_once)
{
    sb_encoded_pair *pairs = pairs_of(EPOCH_PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(EPOCH_PAIRS, pairs, usual, 1, 3);
    int *pair_seen = KEPT(calloc(EPOCH_PAIRS, sizeof *pair_seen));
    int *batch_seen = KEPT(calloc((size_t)epoch.batches, sizeof *batch_seen));
    for (int64_t i = 0; i < EPOCH_PAIRS; i++)
        pair_seen[epoch.order[i]]++;
    for (int64_t batch = 0; batch < epoch.batches; batch++)
        batch_seen[epoch.batch[batch]]++;
    for (int64_t i = 0; i < EPOCH_PAIRS; i++)
        cr_assert(pair_seen[i] == 1, "pair %lld comes %d times", (long long)i, pair_seen[i]);
    for (int64_t batch = 0; batch < epoch.batches; batch++)
        cr_assert(batch_seen[batch] == 1 && epoch.begin[batch] < epoch.begin[batch + 1]);
    cr_expect(epoch.begin[0] == 0 && epoch.begin[epoch.batches] == EPOCH_PAIRS);
}

/* The symbols of a batch, for its longer side, padding included. */
static int64_t symbols(const struct epoch *epoch, const sb_encoded_pair *pairs, int64_t batch)
{
    int64_t longest = 0;
    for (int64_t i = epoch->begin[batch]; i < epoch->begin[batch + 1]; i++) {
        const sb_encoded_pair *p = &pairs[epoch->order[i]];
        longest = p->source_length > longest ? p->source_length : longest;
        longest = p->target_length + 1 > longest ? p->target_length + 1 : longest;
    }
    return longest * (epoch->begin[batch + 1] - epoch->begin[batch]);
}

CPU_TEST(epoch, batches_respect_their_limits)
{
    sb_encoded_pair *pairs = pairs_of(EPOCH_PAIRS);
    pairs[17].source_length = 5000; /* longer than the limit: a batch of its own */
    FREED_BY(epoch_free) struct epoch epoch = planned(EPOCH_PAIRS, pairs, usual, 1, 0);
    int64_t full = 0;
    for (int64_t batch = 0; batch < epoch.batches; batch++) {
        int64_t n = epoch.begin[batch + 1] - epoch.begin[batch],
                size = symbols(&epoch, pairs, batch);
        cr_assert(n >= 1 && n <= usual.pairs && (size <= usual.symbols || n == 1),
                  "batch %lld has %lld pairs, %lld symbols", (long long)batch, (long long)n,
                  (long long)size);
        full += n == usual.pairs || size > usual.symbols * 8 / 10;
    }
    cr_expect(full > epoch.batches * 9 / 10, "%lld of %lld are full", (long long)full,
              (long long)epoch.batches);
}

CPU_TEST(epoch, batches_hold_pairs_of_similar_length)
{
    sb_encoded_pair *pairs = pairs_of(EPOCH_PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(EPOCH_PAIRS, pairs, usual, 1, 0);
    int64_t wasted = 0, all = 0;
    for (int64_t batch = 0; batch < epoch.batches; batch++) {
        int64_t longest = 0, sum = 0;
        for (int64_t i = epoch.begin[batch]; i < epoch.begin[batch + 1]; i++) {
            int64_t length = pairs[epoch.order[i]].target_length + 1;
            longest = length > longest ? length : longest;
            sum += length;
        }
        all += longest * (epoch.begin[batch + 1] - epoch.begin[batch]);
        wasted += longest * (epoch.begin[batch + 1] - epoch.begin[batch]) - sum;
    }
    cr_expect(wasted * 20 < all, "%lld of %lld target symbols are padding", (long long)wasted,
              (long long)all);
}

static bool same_order(const struct epoch *x, const struct epoch *y)
{
    return x->batches == y->batches &&
           memcmp(x->order, y->order, EPOCH_PAIRS * sizeof *x->order) == 0 &&
           memcmp(x->begin, y->begin, (size_t)(x->batches + 1) * sizeof *x->begin) == 0 &&
           memcmp(x->batch, y->batch, (size_t)x->batches * sizeof *x->batch) == 0;
}

CPU_TEST(epoch, the_order_is_a_function_of_seed_and_number)
{
    sb_encoded_pair *pairs = pairs_of(EPOCH_PAIRS);
    FREED_BY(epoch_free) struct epoch first = planned(EPOCH_PAIRS, pairs, usual, 1, 2);
    FREED_BY(epoch_free) struct epoch again = planned(EPOCH_PAIRS, pairs, usual, 1, 2);
    FREED_BY(epoch_free) struct epoch next = planned(EPOCH_PAIRS, pairs, usual, 1, 3);
    FREED_BY(epoch_free) struct epoch other = planned(EPOCH_PAIRS, pairs, usual, 2, 2);
    cr_expect(same_order(&first, &again));
    cr_expect(!same_order(&first, &next) && !same_order(&first, &other));
    int64_t moved = 0;
    for (int64_t i = 0; i < EPOCH_PAIRS; i++)
        moved += first.order[i] != next.order[i];
    cr_expect(moved > EPOCH_PAIRS * 9 / 10, "only %lld pairs move", (long long)moved);
}

/* Short pairs must not all come before long ones. */
CPU_TEST(epoch, batches_are_not_sorted_by_length)
{
    sb_encoded_pair *pairs = pairs_of(EPOCH_PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(EPOCH_PAIRS, pairs, usual, 1, 0);
    int64_t rises = 0;
    for (int64_t i = 1; i < epoch.batches; i++) {
        int64_t before = pairs[epoch.order[epoch.begin[epoch.batch[i - 1]]]].target_length;
        rises += pairs[epoch.order[epoch.begin[epoch.batch[i]]]].target_length > before;
    }
    cr_expect(rises > epoch.batches * 4 / 10 && rises < epoch.batches * 6 / 10,
              "%lld of %lld are longer than the one before", (long long)rises,
              (long long)epoch.batches);
}

static bool plan(void *context)
{
    struct epoch epoch;
    if (!epoch_plan(&epoch, 10, context, usual, 1, 0))
        return false;
    epoch_free(&epoch);
    return true;
}

CPU_TEST(epoch, each_allocation_may_fail)
{
    sb_encoded_pair *pairs = pairs_of(10);
    cr_expect(test_each_allocation_fails(plan, pairs) == 4);
}

/* ---- windows ---- */

enum { LENGTH = 16 };

/* Texts of the letters a to g, one of each of these lengths. */
static sb_documents *documents_new(int n, const int length[])
{
    sb_documents *d = sb_documents_new();
    for (int i = 0; i < n; i++) {
        char text[600];
        for (int t = 0; t < length[i]; t++)
            text[t] = (char)('a' + (t * t + i) % TINY_SYMBOLS);
        MUST(sb_documents_add(d, "text", text, (size_t)length[i], SB_DOCUMENTS_FILES));
    }
    return KEPT(d);
}

static sb_windows *windows_new(int n, const int length[], const sb_windows_options *options)
{
    sb_documents *documents = documents_new(n, length);
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_windows *w = MUST(sb_windows_new(documents, vocabulary, options));
    return KEPT(w);
}

static const int lengths[] = {500, 1, 40, 7, 16, 15, 17};
enum { TEXTS = 7, ALL = 500 + 1 + 40 + 7 + 16 + 15 + 17 + TEXTS };

/* How often each symbol is predicted in the batches of an epoch, and what of. */
static int64_t epoch_targets(sb_windows *w, int64_t epoch, int64_t count[TINY_V], int64_t *begins)
{
    int64_t targets = 0;
    while (sb_windows_tell(w).epoch == epoch) {
        const sb_batch *batch = MUST(sb_windows_next(w));
        const int32_t *in = test_data(sb_batch_get(batch, "target_in")),
                      *out = test_data(sb_batch_get(batch, "target_out")),
                      *length = test_data(sb_batch_get(batch, "target_lengths"));
        const int64_t L = sb_tensor_dim(sb_batch_get(batch, "target_in"), 1);
        cr_expect(L <= LENGTH && batch->items <= 8);
        for (int64_t row = 0; row < batch->items; row++)
            for (int64_t i = 0; i < L; i++) {
                const int64_t at = row * L + i;
                cr_expect((out[at] >= 0) == (i < length[row]));
                if (out[at] < 0)
                    continue;
                count[out[at]]++;
                *begins += in[at] == SB_SYMBOL_BEGIN;
                cr_expect(i + 1 == length[row] || in[at + 1] == out[at], "a window is a text");
                targets++;
            }
    }
    return targets;
}

TEST(windows, each_symbol_is_predicted_once_an_epoch)
{
    const sb_windows_options options = {.seed = 3, .length = LENGTH, .batch_windows = 8};
    sb_windows *w = windows_new(TEXTS, lengths, &options);
    cr_expect(sb_windows_symbols(w) == ALL && sb_windows_bytes(w) == ALL - TEXTS);
    int64_t first[TINY_V] = {0}, begins = 0;
    cr_expect(epoch_targets(w, 0, first, &begins) == ALL && begins == TEXTS);
    cr_expect(first[SB_SYMBOL_END] == TEXTS);
    for (int epoch = 1; epoch < 4; epoch++) {
        int64_t count[TINY_V] = {0};
        cr_expect(epoch_targets(w, epoch, count, &begins) == ALL);
        cr_expect(memcmp(first, count, sizeof count) == 0, "epoch %d", epoch);
    }
}

/* A number that tells batches apart. */
static uint64_t batch_mark(const sb_batch *batch)
{
    MUST(batch);
    sb_tensor *t = sb_batch_get(batch, "target_in");
    return hash_add(HASH_START, test_data(t), (size_t)sb_tensor_size(t) * sizeof(int32_t));
}

TEST(windows, a_position_says_what_comes_next_and_cuts_differ_between_epochs)
{
    const sb_windows_options options = {.seed = 1, .length = LENGTH, .batch_windows = 4};
    enum { BATCHES = 40 };
    uint64_t mark[BATCHES];
    sb_data_position at[BATCHES];
    sb_windows *w = windows_new(TEXTS, lengths, &options);
    for (int i = 0; i < BATCHES; i++) {
        at[i] = sb_windows_tell(w);
        mark[i] = batch_mark(sb_windows_next(w));
    }
    cr_expect(at[BATCHES - 1].epoch > 1);
    for (int i = BATCHES - 1; i >= 0; i -= 7) {
        MUST(sb_windows_seek(w, at[i]));
        cr_expect(batch_mark(sb_windows_next(w)) == mark[i], "batch %d", i);
    }
    REFUSED("no batch 1000 in epoch 0", sb_windows_seek(w, (sb_data_position){0, 1000}));
}

TEST(windows, fixed_ones_are_the_same_in_each_epoch)
{
    const sb_windows_options options = {
        .length = LENGTH, .batch_windows = 100, .batch_symbols = 1 << 20, .fixed = true};
    sb_windows *w = windows_new(1, lengths, &options);
    const sb_batch *batch = sb_windows_next(w);
    MUST(batch && batch->items == (500 + LENGTH) / LENGTH);
    cr_expect(sb_windows_tell(w).epoch == 1);
}

TEST(windows, a_piece_has_no_beginning_and_no_end_of_its_own)
{
    sb_documents *all = documents_new(1, lengths), *rest, *held;
    MUST(sb_documents_divide(all, 10, &rest, &held));
    sb_vocabulary *vocabulary = tiny_vocabulary();
    sb_windows *w = sb_windows_new(held, vocabulary, NULL);
    const sb_batch *batch = sb_windows_next(w);
    const int32_t *in = test_data(sb_batch_get(batch, "target_in"));
    cr_expect(sb_windows_symbols(w) == sb_documents_bytes(held), "the first symbol is read only");
    cr_expect(in[0] >= SB_SPECIAL_SYMBOLS);
    sb_windows_free(w);
    w = sb_windows_new(rest, vocabulary, NULL);
    cr_expect(sb_windows_symbols(w) == sb_documents_bytes(rest), "no end, but a beginning");
    sb_windows_free(w);
    sb_documents_free(rest);
    sb_documents_free(held);
}

CPU_TEST(windows, bad_calls_are_named)
{
    sb_documents *d = documents_new(1, lengths), *none = KEPT(sb_documents_new());
    sb_vocabulary *v = tiny_vocabulary();
    REFUSED("length -1", sb_windows_new(d, v, &(sb_windows_options){.length = -1}));
    REFUSED("none of 0 documents has a symbol to predict", sb_windows_new(none, v, NULL));
    cr_expect(!sb_windows_new(NULL, v, NULL) && !sb_windows_next(NULL));
    REFUSED("window 0 has 0 symbols to predict",
            sb_window_batch_new(1, (const int32_t *const[]){(int32_t[]){4}}, (int64_t[]){0}));
}

static bool read_an_epoch(void *unused)
{
    (void)unused;
    sb_documents *d = sb_documents_new();
    const sb_windows_options options = {.length = 4, .batch_windows = 2};
    sb_vocabulary *v = sb_vocabulary_new(&(const char *){"abcdefg"}, 1, NULL);
    bool ok = d && v && sb_documents_add(d, "text", "abcdefg\nabc", 11, SB_DOCUMENTS_LINES);
    sb_windows *w = ok ? sb_windows_new(d, v, &options) : NULL;
    ok = w != NULL;
    while (ok && sb_windows_tell(w).epoch == 0)
        ok = sb_windows_next(w) != NULL;
    sb_windows_free(w);
    sb_vocabulary_release(v);
    sb_documents_free(d);
    return ok;
}

TEST(windows, each_allocation_may_fail)
{
    cr_expect(test_each_allocation_fails(read_an_epoch, NULL) > 20);
}
