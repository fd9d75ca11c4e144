#include "models/data/epoch.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include <stdlib.h>

enum { STRETCH = 100 }; /* batches' worth of pairs that are sorted by length together */

struct entry {
    int64_t target, source, place, pair;
};

static int epoch_by_length(const void *a_, const void *b_)
{
    const struct entry *a = a_, *b = b_;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

/* Sorts the pairs of one stretch by length, keeping the order of equal ones. */
static void epoch_sort_stretch(struct entry *entry, int64_t size, int64_t *order,
                               const sb_encoded_pair pairs[])
{
    for (int64_t i = 0; i < size; i++) {
        const sb_encoded_pair *p = &pairs[order[i]];
        entry[i] = (struct entry){p->target_length, p->source_length, i, order[i]};
    }
    qsort(entry, (size_t)size, sizeof *entry, epoch_by_length);
    for (int64_t i = 0; i < size; i++)
        order[i] = entry[i].pair;
}

/* Cuts the sorted pairs into batches; begin has room for n + 1. */
static int64_t epoch_cut(int64_t n, const int64_t *order, const sb_encoded_pair pairs[],
                         struct epoch_limits limits, int64_t *begin)
{
    int64_t batches = 0, longest = 0;
    for (int64_t i = 0; i < n; i++) {
        const sb_encoded_pair *p = &pairs[order[i]];
        int64_t target = p->target_length + 1;
        int64_t length = p->source_length > target ? p->source_length : target;
        int64_t size = batches > 0 ? i - begin[batches - 1] : 0;
        longest = length > longest ? length : longest;
        if (batches == 0 || size == limits.pairs || (size + 1) * longest > limits.symbols) {
            begin[batches++] = i;
            longest = length;
        }
    }
    begin[batches] = n;
    return batches;
}

static void epoch_lay_out(struct epoch *epoch, int64_t n, const sb_encoded_pair pairs[],
                          struct epoch_limits limits, struct entry *entry, sb_random *random)
{
    int64_t stretch = STRETCH * limits.pairs;
    sb_random_shuffle(random, n, epoch->order);
    for (int64_t i = 0; i < n; i += stretch)
        epoch_sort_stretch(entry, n - i < stretch ? n - i : stretch, epoch->order + i, pairs);
    epoch->batches = epoch_cut(n, epoch->order, pairs, limits, epoch->begin);
    sb_random_shuffle(random, epoch->batches, epoch->batch);
}

bool epoch_plan(struct epoch *epoch, int64_t n, const sb_encoded_pair pairs[],
                struct epoch_limits limits, uint64_t seed, int64_t number)
{
    sb_random random = sb_random_new(seed, SB_STREAM_DATA);
    random.position += (uint64_t)number << 28; /* an epoch draws fewer than 2^28 numbers */
    int64_t stretch = STRETCH * limits.pairs < n ? STRETCH * limits.pairs : n;
    struct entry *entry = memory_new((size_t)stretch * sizeof *entry);
    *epoch = (struct epoch){.order = memory_new((size_t)n * sizeof(int64_t)),
                            .begin = memory_new((size_t)(n + 1) * sizeof(int64_t)),
                            .batch = memory_new((size_t)n * sizeof(int64_t))};
    bool ok = entry && epoch->order && epoch->begin && epoch->batch;
    if (ok)
        epoch_lay_out(epoch, n, pairs, limits, entry, &random);
    else
        epoch_free(epoch);
    memory_free(entry);
    return ok || sb_fail("data: out of memory for an epoch of %lld pairs", (long long)n);
}

void epoch_free(struct epoch *epoch)
{
    memory_free(epoch->order);
    memory_free(epoch->begin);
    memory_free(epoch->batch);
    *epoch = (struct epoch){0};
}
