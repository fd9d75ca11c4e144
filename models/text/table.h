/*
 * A hash table of byte strings: each distinct key gets the next index, 0, 1, 2, ..., in the order
 * of first appearance, so that values of keys can be in a plain array beside the table.
 */
#ifndef SOFTBACK_MODELS_TEXT_TABLE_H
#define SOFTBACK_MODELS_TEXT_TABLE_H

#include "tensor/buffer.h"
#include <stdbool.h>
#include <stdint.h>

struct table_key {
    uint64_t hash;
    size_t start, size; /* where its bytes lie in `keys`; a NUL follows them */
};

struct table {
    struct buffer keys;
    struct table_key *key;
    int64_t count, room;
    int64_t *slot; /* open addressing: an index + 1, or 0 */
    int64_t slots; /* a power of two, at least twice the count */
};

/*
 * A 64-bit hash of bytes: FNV-1a (tensor/hash.h), then the finaliser of MurmurHash3 (Appleby 2011),
 * so that every bit depends on every byte. Held-out parts are chosen by it: it must never change.
 */
uint64_t hash_bytes(const void *bytes, size_t size);

/* The key's index, whether it is new or not; -1 when there is no memory. An index below
   the old count is not new. */
int64_t table_add(struct table *table, const void *key, size_t size);

/* The key's index, or -1 when it is not there. */
int64_t table_find(const struct table *table, const void *key, size_t size);

/* The bytes of a key, which a NUL follows; they move when a key is added. */
const char *table_key(const struct table *table, int64_t index);
size_t table_key_size(const struct table *table, int64_t index);

/* Removes the keys and keeps the memory. */
void table_clear(struct table *table);

void table_free(struct table *table);

/*
 * A binary heap of pairs of numbers, the smallest on top, compared by `first` and then by `second`.
 * This order is total, so the order of insertion does not matter.
 */
struct heap {
    struct heap_item {
        uint64_t first, second;
    } * item;
    int64_t count, room;
};

bool heap_add(struct heap *heap, uint64_t first, uint64_t second); /* false: no memory */
bool heap_take(struct heap *heap, struct heap_item *smallest);     /* false: it is empty */
void heap_free(struct heap *heap);

#endif
