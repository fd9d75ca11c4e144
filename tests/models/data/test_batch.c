#include "models/data/batch_share.h"
#include "tests/support/device.h"
#include "tests/support/test.h"

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
    cr_assert(batch, "%s", sb_error());
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
    cr_assert(batch, "%s", sb_error());
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
    cr_assert(batch && batch_share_take(&ranks, batch, 1, 2) && batch_share_trim(&ranks), "%s",
              sb_error());
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
    cr_expect(!sb_batch_new(0, &pair));
    EXPECT_ERROR("batch: n is 0; it must be at least 1");
    cr_expect(!sb_batch_new(1, NULL));
    EXPECT_ERROR("batch: pairs is NULL");
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
