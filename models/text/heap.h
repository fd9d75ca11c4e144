/*
 * A binary heap of pairs of numbers, the smallest on top, compared by `first` and then by `second`.
 * This order is total, so the order of insertion does not matter.
 */
#ifndef SOFTBACK_MODELS_TEXT_HEAP_H
#define SOFTBACK_MODELS_TEXT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct heap_item {
    uint64_t first, second;
};

struct heap {
    struct heap_item *item;
    int64_t count, room;
};

bool heap_add(struct heap *heap, uint64_t first, uint64_t second); /* false: no memory */
bool heap_take(struct heap *heap, struct heap_item *smallest);     /* false: it is empty */
void heap_free(struct heap *heap);

#endif
