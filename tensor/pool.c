#include "tensor/pool.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t fail_after = -1;
static _Atomic bool fail_for_good, has_failed;

void pool_fail_after(int64_t after, bool for_good)
{
    fail_for_good = for_good;
    has_failed = false;
    fail_after = after;
}

bool pool_has_failed(void)
{
    return has_failed;
}

static bool made_to_fail(void)
{
    int64_t left = fail_after;
    if (left < 0)
        return false;
    if (left > 0) {
        fail_after = left - 1;
        return false;
    }
    if (!fail_for_good)
        fail_after = -1;
    has_failed = true;
    return true;
}

/* ---- blocks that are larger than the requests they serve ---- */

enum { FIRST_ROOM = 64 };

/* The first slot for a block: the upper bits of a product (Fibonacci hashing, Knuth 1973). */
static size_t home(const struct pool_loans *loans, const void *block)
{
    uint64_t hash = (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) & (loans->room - 1);
}

static size_t next(const struct pool_loans *loans, size_t place)
{
    return (place + 1) & (loans->room - 1);
}

static void put(struct pool_loans *loans, struct pool_loan loan)
{
    size_t place = home(loans, loan.block);
    while (loans->loan[place].block)
        place = next(loans, place);
    loans->loan[place] = loan;
    loans->count++;
}

static bool grow(struct pool_loans *loans)
{
    struct pool_loans larger = {.room = loans->room ? 2 * loans->room : FIRST_ROOM};
    larger.loan = calloc(larger.room, sizeof *larger.loan);
    if (!larger.loan)
        return false;
    for (size_t i = 0; i < loans->room; i++)
        if (loans->loan[i].block)
            put(&larger, loans->loan[i]);
    free(loans->loan);
    *loans = larger;
    return true;
}

/* Stores the class of a block; false when out of memory. */
static bool pool_loans_add(struct pool_loans *loans, void *block, int class)
{
    if (2 * (loans->count + 1) > loans->room && !grow(loans))
        return false;
    put(loans, (struct pool_loan){block, class});
    return true;
}

/* Empties a slot. Later entries, up to the next empty slot, move up if the gap would otherwise end
   their search. */
static void empty(struct pool_loans *loans, size_t gap)
{
    size_t mask = loans->room - 1;
    for (size_t place = next(loans, gap); loans->loan[place].block; place = next(loans, place)) {
        size_t from = home(loans, loans->loan[place].block);
        if (((place - from) & mask) >= ((place - gap) & mask)) {
            loans->loan[gap] = loans->loan[place];
            gap = place;
        }
    }
    loans->loan[gap].block = NULL;
    loans->count--;
}

/* Removes a block and returns its class; -1 when it is not in the table. */
static int pool_loans_take(struct pool_loans *loans, const void *block)
{
    if (loans->count == 0)
        return -1;
    for (size_t place = home(loans, block); loans->loan[place].block; place = next(loans, place))
        if (loans->loan[place].block == block) {
            int class = loans->loan[place].class;
            empty(loans, place);
            return class;
        }
    return -1;
}

/* ---- the pool ---- */

/* The class of a size, and the block size of that class: 64, 80, 96, 112, 128, 160, ... */
static int class_of(size_t bytes, size_t *block_bytes)
{
    if (bytes <= 64) {
        *block_bytes = 64;
        return 0;
    }
    int power = 63 - __builtin_clzll((unsigned long long)bytes - 1);
    size_t quarter = (size_t)1 << (power - 2);
    size_t steps = (bytes - 1) / quarter + 1; /* 5..8 quarters of 2^power */
    *block_bytes = steps * quarter;
    return (power - 6) * 4 + (int)steps - 4;
}

void pool_lock(struct pool *pool)
{
    while (atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire))
        ;
}

void pool_unlock(struct pool *pool)
{
    atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

static void empty_shelves(struct pool *pool)
{
    for (int i = 0; i < POOL_CLASSES; i++) {
        struct pool_shelf *shelf = &pool->shelf[i];
        while (shelf->count > 0)
            pool->system_give(shelf->block[--shelf->count]);
        free(shelf->block);
        *shelf = (struct pool_shelf){0};
    }
    if (pool->loans.count == 0) {
        free(pool->loans.loan);
        pool->loans = (struct pool_loans){0};
    }
}

/* A cached block of the class or of a larger one, at most four times as large unless small, so that
   little memory is wasted. NULL when there is none. */
static void *from_shelves(struct pool *pool, int class)
{
    enum { LARGER = 8, SMALL = 40 }; /* classes: a factor of 4, and 64 KiB */
    int last = pool->scarce ? class : class + LARGER > SMALL ? class + LARGER : SMALL;
    for (int i = class; i <= last && i < POOL_CLASSES; i++) {
        struct pool_shelf *shelf = &pool->shelf[i];
        if (shelf->count == 0)
            continue;
        if (i == class || pool_loans_add(&pool->loans, shelf->block[shelf->count - 1], i))
            return shelf->block[--shelf->count];
    }
    return NULL;
}

static void *from_system(struct pool *pool, size_t bytes)
{
    pool->system_calls++;
    void *block = pool->system_take(bytes);
    if (!block) { /* returning cached blocks of other sizes may free enough memory */
        pool->scarce = true;
        empty_shelves(pool);
        block = pool->system_take(bytes);
    }
    return block;
}

void *pool_take(struct pool *pool, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || made_to_fail())
        return NULL;
    size_t block_bytes;
    int class = class_of(bytes, &block_bytes);
    pool_lock(pool);
    void *block = from_shelves(pool, class);
    if (!block) /* exact sizes let the sanitizer detect an overrun */
        block = from_system(pool, POOL_CACHES ? block_bytes : bytes);
    if (block) {
        pool->live_blocks++;
        pool->live_bytes += (int64_t)block_bytes;
        if (pool->live_bytes > pool->peak_bytes)
            pool->peak_bytes = pool->live_bytes;
    }
    pool_unlock(pool);
    if (block && pool->poison)
        pool->poison(block, bytes);
    return block;
}

void pool_poison_host(void *block, size_t bytes)
{
    memset(block, 0xff, bytes);
}

static bool put_on_shelf(struct pool_shelf *shelf, void *block)
{
    if (!POOL_CACHES)
        return false;
    if (shelf->count == shelf->room) {
        size_t room = shelf->room ? 2 * shelf->room : 16;
        void **grown = realloc(shelf->block, room * sizeof *grown);
        if (!grown)
            return false;
        shelf->block = grown;
        shelf->room = room;
    }
    shelf->block[shelf->count++] = block;
    return true;
}

void pool_give(struct pool *pool, void *block, size_t bytes)
{
    if (!block)
        return;
    size_t block_bytes;
    int class = class_of(bytes, &block_bytes);
    pool_lock(pool);
    int lent = pool_loans_take(&pool->loans, block);
    pool->live_blocks--;
    pool->live_bytes -= (int64_t)block_bytes;
    if (!put_on_shelf(&pool->shelf[lent < 0 ? class : lent], block))
        pool->system_give(block);
    pool_unlock(pool);
}

void pool_trim(struct pool *pool)
{
    pool_lock(pool);
    empty_shelves(pool);
    if (pool->system_trim)
        pool->system_trim();
    pool_unlock(pool);
}
