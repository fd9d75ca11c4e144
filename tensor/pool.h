/*
 * A caching allocator: it keeps freed blocks by size and reuses them, so that a training loop makes
 * no system allocations after its first steps.
 *
 * Sizes are rounded up to four classes for each power of two. If no block of a class is cached, the
 * pool uses a somewhat larger one, because the batches of one epoch have other shapes than those of
 * the last. A pool serves one kind of memory (host, or one CUDA device) and is thread-safe. Under
 * the address sanitizer nothing is cached, so that it detects use after free.
 */
#ifndef SOFTBACK_TENSOR_POOL_H
#define SOFTBACK_TENSOR_POOL_H

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
#define POOL_CACHES 1 /* whether freed blocks are cached */
#endif

enum { POOL_CLASSES = 256 };

struct pool_shelf {
    void **block;
    size_t count, room;
};

/*
 * The blocks that are larger than the requests they serve: the caller that frees one only knows
 * the size that it requested. A hash table by address, with linear probing. It has separate memory,
 * since a pool may serve a device whose memory the host cannot access.
 */
struct pool_loan {
    void *block; /* NULL: an empty slot */
    int class;
};

struct pool_loans {
    struct pool_loan *loan;
    size_t count, room; /* room is 0 or a power of two, at most half full */
};

struct pool {
    void *(*system_take)(size_t bytes); /* 64-byte aligned memory, or NULL (see pool_take) */
    void (*system_give)(void *block);
    void (*system_trim)(void); /* returns what system_give has kept; NULL: it keeps nothing */
    /* Fills new blocks with 0xff, NaN in every float; NULL: blocks stay undefined. */
    void (*poison)(void *block, size_t bytes);
    atomic_flag lock;
    struct pool_shelf shelf[POOL_CLASSES];
    struct pool_loans loans;
    bool scarce; /* an allocation has failed once, so larger blocks are no longer substituted */
    int64_t live_blocks, live_bytes, peak_bytes, system_calls;
};

/* A block of at least `bytes` bytes, contents undefined, or NULL when there is no memory; with a
   message only if the device refuses for another reason (failure_count). */
void *pool_take(struct pool *pool, size_t bytes);

/* Frees a block that pool_take returned for this many bytes; NULL is allowed. */
void pool_give(struct pool *pool, void *block, size_t bytes);

/* While it is locked, other threads wait to take or give a block. */
void pool_lock(struct pool *pool);
void pool_unlock(struct pool *pool);

/* Returns every cached block to the system. */
void pool_trim(struct pool *pool);

/* Poisons host memory. */
void pool_poison_host(void *block, size_t bytes);

/*
 * For tests: `after` more requests succeed (in all pools), then the next one fails, and with
 * `for_good` all later ones too. A negative `after` ends this.
 */
void pool_fail_after(int64_t after, bool for_good);
/* Whether a request has failed for this reason since. */
bool pool_has_failed(void);

#endif
