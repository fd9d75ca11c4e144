#include "models/text/heap.h"
#include "tensor/memory.h"

static bool heap_less(struct heap_item a, struct heap_item b)
{
    return a.first != b.first ? a.first < b.first : a.second < b.second;
}

bool heap_add(struct heap *heap, uint64_t first, uint64_t second)
{
    if (!memory_room(&heap->item, heap->count, &heap->room, sizeof *heap->item))
        return false;
    struct heap_item *item = heap->item, added = {first, second};
    int64_t at = heap->count++;
    for (; at > 0 && heap_less(added, item[(at - 1) / 2]); at = (at - 1) / 2)
        item[at] = item[(at - 1) / 2];
    item[at] = added;
    return true;
}

bool heap_take(struct heap *heap, struct heap_item *smallest)
{
    if (heap->count == 0)
        return false;
    struct heap_item *item = heap->item, moved = item[--heap->count];
    *smallest = item[0];
    int64_t at = 0;
    for (int64_t below; (below = 2 * at + 1) < heap->count; at = below) {
        if (below + 1 < heap->count && heap_less(item[below + 1], item[below]))
            below++;
        if (!heap_less(item[below], moved))
            break;
        item[at] = item[below];
    }
    item[at] = moved;
    return true;
}

void heap_free(struct heap *heap)
{
    memory_free(heap->item);
    *heap = (struct heap){0};
}
