#include "models/text/table.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include <string.h>

uint64_t hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = hash_add(HASH_START, bytes, size);
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 33;
}

/* The slot that holds the key, or the empty one where it belongs. */
static int64_t table_slot_of(const struct table *table, uint64_t hash, const void *bytes,
                             size_t size)
{
    int64_t mask = table->slots - 1;
    int64_t at = (int64_t)(hash & (uint64_t)mask);
    for (; table->slot[at]; at = (at + 1) & mask) {
        const struct table_key *key = &table->key[table->slot[at] - 1];
        if (key->hash == hash && key->size == size &&
            (size == 0 || memcmp(table->keys.bytes + key->start, bytes, size) == 0))
            break;
    }
    return at;
}

static bool table_make_slots(struct table *table)
{
    if (2 * (table->count + 1) <= table->slots)
        return true;
    int64_t slots = table->slots ? 2 * table->slots : 32, mask = slots - 1;
    int64_t *slot = memory_new((size_t)slots * sizeof *slot);
    if (!slot)
        return false;
    for (int64_t i = 0; i < table->count; i++) {
        int64_t at = (int64_t)(table->key[i].hash & (uint64_t)mask);
        while (slot[at])
            at = (at + 1) & mask;
        slot[at] = i + 1;
    }
    memory_free(table->slot);
    table->slot = slot;
    table->slots = slots;
    return true;
}

int64_t table_add(struct table *table, const void *key, size_t size)
{
    if (!table_make_slots(table) ||
        !memory_room(&table->key, table->count, &table->room, sizeof *table->key))
        return -1;
    uint64_t hash = hash_bytes(key, size);
    int64_t at = table_slot_of(table, hash, key, size);
    if (table->slot[at])
        return table->slot[at] - 1;
    size_t start = table->keys.size;
    if (!buffer_add(&table->keys, key, size) || !buffer_add(&table->keys, "", 1)) {
        table->keys.size = start;
        return -1;
    }
    table->key[table->count] = (struct table_key){hash, start, size};
    table->slot[at] = ++table->count;
    return table->count - 1;
}

int64_t table_find(const struct table *table, const void *key, size_t size)
{
    if (table->count == 0)
        return -1;
    return table->slot[table_slot_of(table, hash_bytes(key, size), key, size)] - 1;
}

const char *table_key(const struct table *table, int64_t index)
{
    return table->keys.bytes + table->key[index].start;
}

size_t table_key_size(const struct table *table, int64_t index)
{
    return table->key[index].size;
}

void table_clear(struct table *table)
{
    table->keys.size = 0;
    table->count = 0;
    if (table->slots > 0)
        memset(table->slot, 0, (size_t)table->slots * sizeof *table->slot);
}

void table_free(struct table *table)
{
    buffer_free(&table->keys);
    memory_free(table->key);
    memory_free(table->slot);
    *table = (struct table){0};
}

/* ---- heaps ---- */

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
