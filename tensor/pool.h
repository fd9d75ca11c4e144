/*
 * A caching allocator: blocks that are given back are kept by size and handed out again, so that
 * after its first steps a training loop asks the system for nothing.
 *
 * Sizes are rounded up to four classes for each power of two. Where no block of a class is cached,
 * a somewhat larger one is lent instead: the batches of an epoch have other shapes than those of
 * the last, and would otherwise go on asking the system now and then. A pool serves one kind of
 * memory (host, or one CUDA device) and may be used by several threads. Under the address sanitizer
 * nothing is cached, so that a use after free is seen.
 */
#ifndef SOFTBACK_TENSOR_POOL_H
#define SOFTBACK_TENSOR_POOL_H

#include "tensor/pool_loans.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_CACHES 0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POOL_CACHES 0
#endif
#ifndef POOL_CACHES
#define POOL_CACHES 1 /* whether blocks that are given back are kept */
#endif

enum { POOL_CLASSES = 256 };

struct pool_shelf {
    void **block;
    size_t count, room;
};

struct pool {
    void *(*system_take)(size_t bytes); /* 64-byte aligned memory, or NULL */
    void (*system_give)(void *block);
    /* Fills blocks with 0xff, NaN in every float, before they are handed out; NULL: they are left
       as they are. */
    void (*poison)(void *block, size_t bytes);
    atomic_flag lock;
    struct pool_shelf shelf[POOL_CLASSES];
    struct pool_loans loans;
    bool scarce; /* the system has refused a block once: larger ones are lent no more */
    int64_t live_blocks, live_bytes, peak_bytes, system_calls;
};

/* A block of at least `bytes` bytes, contents undefined, or NULL when there is no memory. */
void *pool_take(struct pool *pool, size_t bytes);

/* Gives back a block that pool_take returned for this many bytes; NULL is allowed. */
void pool_give(struct pool *pool, void *block, size_t bytes);

/* Returns every cached block to the system. */
void pool_trim(struct pool *pool);

/* What poisons host memory. */
void pool_poison_host(void *block, size_t bytes);

/*
 * For tests: let `after` more requests succeed (in all pools), then fail the next one; with
 * `for_good` also all that follow. A negative `after` ends the failing.
 */
void pool_fail_after(int64_t after, bool for_good);

#endif
