#include "models/data/cursor.h"
#include "tensor/error.h"
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

/* ---- cursors ---- */

static bool cursor_is_endless(const struct cursor *c)
{
    return !c->items->list;
}

void cursor_close(struct cursor *c)
{
    epoch_free(&c->epoch);
    sb_batch_free(c->batch);
}

/* After a failure no epoch is planned, and the next call plans the one that it needs. */
static bool cursor_plan(struct cursor *c, int64_t number)
{
    struct epoch epoch;
    int64_t count;
    if (c->planned == number + 1)
        return true;
    c->planned = 0;
    const sb_encoded_pair *item = c->items->list(c->source, number, &count);
    if (!item || !epoch_plan(&epoch, count, item, c->limits, c->seed, number))
        return false;
    epoch_free(&c->epoch);
    c->epoch = epoch;
    c->planned = number + 1;
    return true;
}

/* The next batch of the planned epoch. */
static sb_batch *cursor_pick(const struct cursor *c)
{
    const int64_t b = c->epoch.batch[c->next.batch], begin = c->epoch.begin[b];
    return c->items->batch(c->source, c->epoch.begin[b + 1] - begin, c->epoch.order + begin);
}

sb_batch *cursor_batch(const struct cursor *c, int64_t first, int64_t n)
{
    int64_t *item = memory_new((size_t)n * sizeof *item);
    if (!item)
        return sb_fail("%s: out of memory", c->items->name);
    for (int64_t i = 0; i < n; i++)
        item[i] = first + i;
    sb_batch *batch = c->items->batch(c->source, n, item);
    memory_free(item);
    return batch;
}

const sb_batch *cursor_next(void *cursor)
{
    struct cursor *c = cursor;
    const bool endless = cursor_is_endless(c);
    const int64_t n = c->limits.pairs;
    if (endless && c->next.batch > INT64_MAX / n - 1)
        return sb_fail("%s: there is no batch %lld", c->items->name, (long long)c->next.batch);
    sb_batch *batch = endless                         ? cursor_batch(c, c->next.batch * n, n)
                      : cursor_plan(c, c->next.epoch) ? cursor_pick(c)
                                                      : NULL;
    if (!batch)
        return NULL;
    sb_batch_free(c->batch);
    c->batch = batch;
    c->next.batch++;
    if (!endless && c->next.batch == c->epoch.batches)
        c->next = (sb_data_position){c->next.epoch + 1, 0};
    return batch;
}

sb_data_position cursor_tell(const void *cursor)
{
    const struct cursor *c = cursor;
    return c->next;
}

bool cursor_seek(void *cursor, sb_data_position p)
{
    struct cursor *c = cursor;
    const int64_t epochs = cursor_is_endless(c) ? 1 : MOST_EPOCHS;
    bool there = p.epoch >= 0 && p.epoch < epochs && p.batch >= 0;
    if (there && !cursor_is_endless(c)) {
        if (!cursor_plan(c, p.epoch))
            return false;
        there = p.batch < c->epoch.batches;
    }
    if (!there)
        return sb_fail("%s_seek: there is no batch %lld in epoch %lld", c->items->name,
                       (long long)p.batch, (long long)p.epoch);
    c->next = p;
    return true;
}

static uint64_t cursor_hash(const void *cursor)
{
    const struct cursor *c = cursor;
    return c->items->hash(c->source);
}

int64_t cursor_batches(const void *cursor)
{
    const struct cursor *c = cursor;
    return c->planned == c->next.epoch + 1 ? c->epoch.batches : 0;
}

sb_source cursor_as_source(struct cursor *cursor)
{
    return (sb_source){.object = cursor,
                       .next = cursor_next,
                       .tell = cursor_tell,
                       .seek = cursor_seek,
                       .hash = cursor_hash,
                       .batches = cursor_batches};
}

void *cursor_object(const sb_source *source, const struct cursor_items *items)
{
    const struct cursor *c = source->next == cursor_next ? source->object : NULL;
    return c && c->items == items ? c->source : NULL;
}
