#include "models/data/cursor.h"
#include "tensor/error.h"
#include "tensor/memory.h"

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

/* The next batch of an endless source. */
static sb_batch *cursor_make(const struct cursor *c)
{
    const int64_t n = c->limits.pairs;
    int64_t *item = memory_new((size_t)n * sizeof *item);
    if (!item)
        return sb_fail("%s: out of memory", c->items->name);
    for (int64_t i = 0; i < n; i++)
        item[i] = c->next.batch * n + i;
    sb_batch *batch = c->items->batch(c->source, n, item);
    memory_free(item);
    return batch;
}

const sb_batch *cursor_next(void *cursor)
{
    struct cursor *c = cursor;
    const bool endless = cursor_is_endless(c);
    sb_batch *batch = endless                         ? cursor_make(c)
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
