#include "models/text/byte_pairs.h"
#include "models/text/heap.h"
#include "tensor/memory.h"

struct link {
    int32_t previous, next;
};

/* Pushes the pair at `at` on the heap, if it has a merge: ordered by rank, then by place. */
static bool byte_pairs_push(const sb_vocabulary *v, struct heap *heap, const int32_t *ids,
                            const struct link *link, int32_t at)
{
    if (at < 0 || link[at].next < 0)
        return true;
    int32_t pair[2] = {ids[at], ids[link[at].next]};
    int64_t rank = table_find(&v->merges, pair, sizeof pair);
    return rank < 0 || heap_add(heap, (uint64_t)rank, (uint64_t)at);
}

/* Applies the earliest learned merge at its leftmost place, until none applies. The result of a
   merge is part of later merges only, so this repeats what learning did. */
static bool byte_pairs_apply_merge(const sb_vocabulary *v, struct heap *heap, int32_t *ids,
                                   struct link *link)
{
    struct heap_item item;
    while (heap_take(heap, &item)) {
        int32_t at = (int32_t)item.second, right = link[at].next;
        if (ids[at] < 0 || right < 0)
            continue;
        int32_t pair[2] = {ids[at], ids[right]};
        if (table_find(&v->merges, pair, sizeof pair) != (int64_t)item.first)
            continue; /* an outdated entry: the pair has changed since */
        ids[at] = merge_result(v, (int64_t)item.first);
        ids[right] = -1;
        link[at].next = link[right].next;
        if (link[at].next >= 0)
            link[link[at].next].previous = at;
        if (!byte_pairs_push(v, heap, ids, link, link[at].previous) ||
            !byte_pairs_push(v, heap, ids, link, at))
            return false;
    }
    return true;
}

int64_t byte_pairs_apply(const sb_vocabulary *vocabulary, int32_t *ids, int64_t count)
{
    if (count < 2 || vocabulary->merges.count == 0)
        return count;
    struct heap heap = {0};
    struct link *link = memory_new((size_t)count * sizeof *link);
    bool ok = link != NULL;
    for (int32_t at = 0; ok && at < count; at++)
        link[at] = (struct link){at - 1, at + 1 < count ? at + 1 : -1};
    for (int32_t at = 0; ok && at < count; at++)
        ok = byte_pairs_push(vocabulary, &heap, ids, link, at);
    ok = ok && byte_pairs_apply_merge(vocabulary, &heap, ids, link);
    int64_t left = 0;
    for (int64_t at = 0; ok && at < count; at++)
        if (ids[at] >= 0)
            ids[left++] = ids[at];
    heap_free(&heap);
    memory_free(link);
    return ok ? left : -1;
}
