#include "models/data/cursor.h"
#include "tests/support/test.h"

enum { PAIRS = 5000, LONGEST = 60 };

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
    sb_encoded_pair *pairs = pairs_of(PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(PAIRS, pairs, usual, 1, 3);
    int *pair_seen = KEPT(calloc(PAIRS, sizeof *pair_seen));
    int *batch_seen = KEPT(calloc((size_t)epoch.batches, sizeof *batch_seen));
    for (int64_t i = 0; i < PAIRS; i++)
        pair_seen[epoch.order[i]]++;
    for (int64_t b = 0; b < epoch.batches; b++)
        batch_seen[epoch.batch[b]]++;
    for (int64_t i = 0; i < PAIRS; i++)
        cr_assert(pair_seen[i] == 1, "pair %lld comes %d times", (long long)i, pair_seen[i]);
    for (int64_t b = 0; b < epoch.batches; b++)
        cr_assert(batch_seen[b] == 1 && epoch.begin[b] < epoch.begin[b + 1]);
    cr_expect(epoch.begin[0] == 0 && epoch.begin[epoch.batches] == PAIRS);
}

/* The symbols of a batch, for its longer side, padding included. */
static int64_t symbols(const struct epoch *epoch, const sb_encoded_pair *pairs, int64_t b)
{
    int64_t longest = 0;
    for (int64_t i = epoch->begin[b]; i < epoch->begin[b + 1]; i++) {
        const sb_encoded_pair *p = &pairs[epoch->order[i]];
        longest = p->source_length > longest ? p->source_length : longest;
        longest = p->target_length + 1 > longest ? p->target_length + 1 : longest;
    }
    return longest * (epoch->begin[b + 1] - epoch->begin[b]);
}

CPU_TEST(epoch, batches_respect_their_limits)
{
    sb_encoded_pair *pairs = pairs_of(PAIRS);
    pairs[17].source_length = 5000; /* longer than the limit: a batch of its own */
    FREED_BY(epoch_free) struct epoch epoch = planned(PAIRS, pairs, usual, 1, 0);
    int64_t full = 0;
    for (int64_t b = 0; b < epoch.batches; b++) {
        int64_t n = epoch.begin[b + 1] - epoch.begin[b], size = symbols(&epoch, pairs, b);
        cr_assert(n >= 1 && n <= usual.pairs && (size <= usual.symbols || n == 1),
                  "batch %lld has %lld pairs, %lld symbols", (long long)b, (long long)n,
                  (long long)size);
        full += n == usual.pairs || size > usual.symbols * 8 / 10;
    }
    cr_expect(full > epoch.batches * 9 / 10, "%lld of %lld are full", (long long)full,
              (long long)epoch.batches);
}

CPU_TEST(epoch, batches_hold_pairs_of_similar_length)
{
    sb_encoded_pair *pairs = pairs_of(PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(PAIRS, pairs, usual, 1, 0);
    int64_t wasted = 0, all = 0;
    for (int64_t b = 0; b < epoch.batches; b++) {
        int64_t longest = 0, sum = 0;
        for (int64_t i = epoch.begin[b]; i < epoch.begin[b + 1]; i++) {
            int64_t length = pairs[epoch.order[i]].target_length + 1;
            longest = length > longest ? length : longest;
            sum += length;
        }
        all += longest * (epoch.begin[b + 1] - epoch.begin[b]);
        wasted += longest * (epoch.begin[b + 1] - epoch.begin[b]) - sum;
    }
    cr_expect(wasted * 20 < all, "%lld of %lld target symbols are padding", (long long)wasted,
              (long long)all);
}

static bool same_order(const struct epoch *x, const struct epoch *y)
{
    return x->batches == y->batches && memcmp(x->order, y->order, PAIRS * sizeof *x->order) == 0 &&
           memcmp(x->begin, y->begin, (size_t)(x->batches + 1) * sizeof *x->begin) == 0 &&
           memcmp(x->batch, y->batch, (size_t)x->batches * sizeof *x->batch) == 0;
}

CPU_TEST(epoch, the_order_is_a_function_of_seed_and_number)
{
    sb_encoded_pair *pairs = pairs_of(PAIRS);
    FREED_BY(epoch_free) struct epoch first = planned(PAIRS, pairs, usual, 1, 2);
    FREED_BY(epoch_free) struct epoch again = planned(PAIRS, pairs, usual, 1, 2);
    FREED_BY(epoch_free) struct epoch next = planned(PAIRS, pairs, usual, 1, 3);
    FREED_BY(epoch_free) struct epoch other = planned(PAIRS, pairs, usual, 2, 2);
    cr_expect(same_order(&first, &again));
    cr_expect(!same_order(&first, &next) && !same_order(&first, &other));
    int64_t moved = 0;
    for (int64_t i = 0; i < PAIRS; i++)
        moved += first.order[i] != next.order[i];
    cr_expect(moved > PAIRS * 9 / 10, "only %lld pairs move", (long long)moved);
}

/* Short pairs must not all come before long ones. */
CPU_TEST(epoch, batches_are_not_sorted_by_length)
{
    sb_encoded_pair *pairs = pairs_of(PAIRS);
    FREED_BY(epoch_free) struct epoch epoch = planned(PAIRS, pairs, usual, 1, 0);
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
