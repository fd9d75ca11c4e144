/*
 * A binary heap that gives out the smallest of pairs of numbers, compared by `first` and then by
 * `second`: its order is total, so that what comes out depends on nothing else.
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
