#include "tensor/hash.h"
#include "tests/support/tiny.h"
#include <stdio.h>

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
        for (int64_t b = 0; b < batch->items; b++)
            for (int64_t i = 0; i < L; i++) {
                const int64_t at = b * L + i;
                cr_expect((out[at] >= 0) == (i < length[b]));
                if (out[at] < 0)
                    continue;
                count[out[at]]++;
                *begins += in[at] == SB_SYMBOL_BEGIN;
                cr_expect(i + 1 == length[b] || in[at + 1] == out[at], "a window is a text");
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
    cr_expect(!sb_windows_seek(w, (sb_data_position){0, 1000}));
    cr_expect(strstr(sb_error(), "no batch 1000 in epoch 0"), "%s", sb_error());
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
    cr_expect(!sb_windows_new(d, v, &(sb_windows_options){.length = -1}));
    cr_expect(strstr(sb_error(), "length -1"), "%s", sb_error());
    cr_expect(!sb_windows_new(none, v, NULL));
    cr_expect(strstr(sb_error(), "none of 0 documents has a symbol to predict"), "%s", sb_error());
    cr_expect(!sb_windows_new(NULL, v, NULL) && !sb_windows_next(NULL));
    cr_expect(!sb_window_batch_new(1, (const int32_t *const[]){(int32_t[]){4}}, (int64_t[]){0}));
    cr_expect(strstr(sb_error(), "window 0 has 0 symbols to predict"), "%s", sb_error());
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
