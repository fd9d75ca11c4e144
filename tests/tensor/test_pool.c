#include "tests/support/test.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* A system with limited memory, which counts requests. */
static int64_t system_free, system_held;

static void *system_take(size_t bytes)
{
    if ((int64_t)bytes > system_free)
        return NULL;
    char *block = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memcpy(block, &bytes, sizeof bytes); /* the size lies in the first of the block's 64 bytes */
    system_free -= (int64_t)bytes;
    system_held++;
    return block + 64;
}

static void system_give(void *block)
{
    size_t bytes;
    memcpy(&bytes, (char *)block - 64, sizeof bytes);
    system_free += (int64_t)bytes;
    system_held--;
    free((char *)block - 64);
}

static struct pool new_pool(int64_t memory)
{
    system_free = memory;
    system_held = 0;
    return (struct pool){system_take, system_give, .lock = ATOMIC_FLAG_INIT};
}

/* The first statement of a test about cached blocks. */
#define CACHES                                                                                     \
    if (!POOL_CACHES)                                                                              \
    return

CPU_TEST(pool, sizes_are_rounded_to_four_classes_for_each_power_of_two)
{
    static const int64_t classes[] = {64,  80,  96,  112, 128, 160, 192, 224, 256,
                                      320, 384, 448, 512, 640, 768, 896, 1024};
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 20);
    int place = 0;
    for (size_t bytes = 0; bytes <= 1024; bytes++) {
        void *block = pool_take(&pool, bytes);
        place += (int64_t)bytes > classes[place];
        cr_expect(pool.live_bytes == classes[place], "%zu bytes take %lld", bytes,
                  (long long)pool.live_bytes);
        pool_give(&pool, block, bytes);
    }
}

CPU_TEST(pool, rounding_wastes_at_most_a_quarter)
{
    struct pool pool = new_pool(INT64_MAX);
    for (size_t bytes = 64; bytes < 1 << 22; bytes += bytes / 7 + 1) {
        void *block = pool_take(&pool, bytes);
        cr_expect(pool.live_bytes >= (int64_t)bytes && pool.live_bytes * 4 <= (int64_t)bytes * 5);
        pool_give(&pool, block, bytes);
        pool_trim(&pool);
    }
}

CPU_TEST(pool, a_second_round_requests_nothing_from_the_system, CACHES)
{
    enum { BLOCKS = 100 };
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 24);
    void *block[BLOCKS];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < BLOCKS; i++)
            block[i] = pool_take(&pool, (size_t)(37 * i));
        cr_expect(pool.system_calls == BLOCKS && pool.live_blocks == BLOCKS);
        for (int i = 0; i < BLOCKS; i++)
            pool_give(&pool, block[(i * 7) % BLOCKS], (size_t)(37 * ((i * 7) % BLOCKS)));
        cr_expect(pool.live_blocks == 0 && pool.live_bytes == 0);
    }
}

CPU_TEST(pool, a_block_is_reused_for_every_size_of_its_class, CACHES)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 20);
    void *block = pool_take(&pool, 65);
    pool_give(&pool, block, 65);
    void *other = pool_take(&pool, 81);
    cr_expect(other != block, "another class");
    cr_expect(pool_take(&pool, 80) == block);
    pool_give(&pool, block, 80);
    pool_give(&pool, other, 81);
}

CPU_TEST(pool, a_larger_cached_block_is_reused_and_returns_to_its_class, CACHES)
{
    struct pool pool = new_pool(1 << 24);
    void *large = pool_take(&pool, 1 << 20), *small;
    pool_give(&pool, large, 1 << 20);
    small = pool_take(&pool, 1 << 18);
    cr_expect(small == large && pool.live_bytes == 1 << 18, "live bytes count the requested class");
    pool_give(&pool, small, 1 << 18);
    cr_expect(pool_take(&pool, 1 << 20) == large && pool.system_calls == 1);
    pool_give(&pool, large, 1 << 20);
    small = pool_take(&pool, (1 << 18) - (1 << 15));
    cr_expect(small != large, "a block more than four times as large was reused");
    pool_give(&pool, small, (1 << 18) - (1 << 15));
    pool_trim(&pool);
    cr_expect(system_held == 0 && !pool.loans.loan);
}

CPU_TEST(pool, any_cached_small_block_is_reused, CACHES)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 24);
    void *block = pool_take(&pool, 1 << 16);
    pool_give(&pool, block, 1 << 16);
    cr_expect(pool_take(&pool, 1) == block);
    pool_give(&pool, block, 1);
}

/* Thousands of blocks are taken and given back, each size once. */
CPU_TEST(pool, many_reused_blocks_return_to_their_classes, CACHES)
{
    enum { BLOCKS = 3000 };
    struct pool pool = new_pool(INT64_MAX);
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    static void *block[BLOCKS];
    static size_t size[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = pool_take(&pool, 4096 + i);
    for (size_t i = 0; i < BLOCKS; i++)
        pool_give(&pool, block[i], 4096 + i);
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = pool_take(&pool, size[i] = 1 + i % 4096);
    for (int round = 0; round < 20000; round++) {
        size_t i = sb_random_below(&random, BLOCKS);
        pool_give(&pool, block[i], size[i]);
        block[i] = pool_take(&pool, size[i] = 1 + sb_random_below(&random, 4096));
    }
    cr_expect(pool.system_calls == BLOCKS && pool.loans.count <= BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        pool_give(&pool, block[i], size[i]);
    cr_expect(pool.loans.count == 0);
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = pool_take(&pool, 4096 + i);
    cr_expect(pool.system_calls == BLOCKS, "every block is in the cache of its class");
    for (size_t i = 0; i < BLOCKS; i++)
        pool_give(&pool, block[i], 4096 + i);
    pool_trim(&pool);
    cr_expect(system_held == 0);
}

CPU_TEST(pool, trim_returns_cached_blocks_to_the_system)
{
    struct pool pool = new_pool(1 << 20);
    void *kept = pool_take(&pool, 1000), *block[20];
    for (int i = 0; i < 20; i++)
        block[i] = pool_take(&pool, (size_t)(100 * i));
    for (int i = 0; i < 20; i++)
        pool_give(&pool, block[i], (size_t)(100 * i));
    cr_expect(system_held == (POOL_CACHES ? 21 : 1));
    pool_trim(&pool);
    cr_expect(system_held == 1 && pool.live_blocks == 1);
    pool_give(&pool, kept, 1000);
    pool_trim(&pool);
    cr_expect(system_held == 0 && system_free == 1 << 20);
}

#if defined(__GLIBC__) && POOL_CACHES
/* Bytes of this process that are in memory. */
static int64_t resident(void)
{
    long long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file && fscanf(file, "%lld %lld", &all, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* glibc takes blocks of a size that was freed before from its heap, whose top is in use here. */
CPU_TEST(pool, trim_returns_memory_between_blocks_that_are_in_use)
{
    enum { BLOCKS = 40, BYTES = 1 << 20 };
    void *block[BLOCKS];
    memory_free(memory_new(8 * BYTES));
    pool_trim(memory_pool());
    for (int i = 0; i < BLOCKS; i++)
        block[i] = memset(memory_new(BYTES), 1, BYTES);
    const int64_t before = resident();
    for (int i = 0; i < BLOCKS - 1; i++)
        memory_free(block[i]);
    pool_trim(memory_pool());
    cr_expect(before - resident() > (BLOCKS - 2) * BYTES, "%lld bytes",
              (long long)(before - resident()));
    memory_free(block[BLOCKS - 1]);
}
#endif

CPU_TEST(pool, cached_blocks_are_returned_before_a_request_fails)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(4096);
    void *small[32];
    for (int i = 0; i < 32; i++)
        small[i] = pool_take(&pool, 128);
    cr_expect(small[31] && !pool_take(&pool, 1), "the system is full");
    for (int i = 0; i < 32; i++)
        pool_give(&pool, small[i], 128);
    void *large = pool_take(&pool, 4096);
    cr_expect(large != NULL, "the cached blocks were not returned");
    cr_expect(pool.live_blocks == 1 && pool.live_bytes == 4096);
    pool_give(&pool, large, 4096);
}

CPU_TEST(pool, sizes_beyond_any_memory_are_refused)
{
    struct pool pool = new_pool(1 << 20);
    cr_expect(!pool_take(&pool, SIZE_MAX) && !pool_take(&pool, ((size_t)1 << 60) + 1));
    cr_expect(!pool_take(&pool, 1 << 21));
    cr_expect(pool.live_blocks == 0 && pool.live_bytes == 0);
    pool_give(&pool, NULL, 100);
    cr_expect(pool.live_blocks == 0);
}

CPU_TEST(pool, the_peak_is_the_most_that_was_live)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 20);
    void *a = pool_take(&pool, 1024), *b = pool_take(&pool, 2048);
    pool_give(&pool, a, 1024);
    cr_expect(pool.peak_bytes == 3072 && pool.live_bytes == 2048);
    a = pool_take(&pool, 512);
    cr_expect(pool.peak_bytes == 3072);
    pool_give(&pool, a, 512);
    pool_give(&pool, b, 2048);
}

CPU_TEST(pool, poisoned_blocks_read_as_nan)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 20);
    pool.poison = pool_poison_host;
    for (int round = 0; round < 2; round++) {
        double *block = pool_take(&pool, 10 * sizeof *block);
        for (int i = 0; i < 10; i++)
            cr_expect(isnan(block[i]) && isnan(((float *)block)[2 * i]));
        for (int i = 0; i < 10; i++)
            block[i] = 1;
        pool_give(&pool, block, 10 * sizeof *block);
    }
}

CPU_TEST(pool, host_memory_is_aligned_to_64_bytes)
{
    void *block[40];
    for (size_t i = 0; i < 40; i++) {
        block[i] = pool_take(memory_pool(), i * i);
        cr_expect((uintptr_t)block[i] % 64 == 0);
    }
    for (size_t i = 0; i < 40; i++)
        pool_give(memory_pool(), block[i], i * i);
}

CPU_TEST(pool, requests_can_be_made_to_fail)
{
    FREED_BY(pool_trim) struct pool pool = new_pool(1 << 20);
    void *block[8];
    pool_fail_after(2, false);
    for (int i = 0; i < 5; i++)
        block[i] = pool_take(&pool, 64);
    cr_expect(block[0] && block[1] && !block[2] && block[3] && block[4], "only the third fails");
    for (int i = 0; i < 5; i++)
        pool_give(&pool, block[i], 64);
    pool_fail_after(1, true);
    for (int i = 0; i < 4; i++)
        block[i] = pool_take(&pool, 64); /* cached blocks fail like any other */
    cr_expect(block[0] && !block[1] && !block[2] && !block[3], "all later ones fail");
    pool_fail_after(-1, false);
    block[1] = pool_take(&pool, 64);
    cr_expect(block[1] != NULL);
    pool_give(&pool, block[0], 64);
    pool_give(&pool, block[1], 64);
    cr_expect(pool.live_blocks == 0);
}

struct user {
    pthread_t thread;
    struct pool *pool;
    unsigned char mark;
    bool ok;
};

/* Allocates and frees blocks of changing sizes, and checks that no other thread writes into
   them. */
static void *use(void *user_)
{
    enum { HELD = 16 };
    struct user *user = user_;
    unsigned char *block[HELD] = {NULL};
    size_t bytes[HELD] = {0};
    user->ok = true;
    for (size_t i = 0; i < 20000; i++) {
        size_t k = i * 7 % HELD;
        for (size_t j = 0; block[k] && j < bytes[k]; j++)
            user->ok &= block[k][j] == user->mark;
        pool_give(user->pool, block[k], bytes[k]);
        bytes[k] = i * 37 % 300 + 1;
        block[k] = pool_take(user->pool, bytes[k]);
        if (!block[k])
            return NULL;
        memset(block[k], user->mark, bytes[k]);
    }
    for (int k = 0; k < HELD; k++)
        pool_give(user->pool, block[k], bytes[k]);
    return NULL;
}

CPU_TEST(pool, several_threads_may_use_it)
{
    struct user user[4];
    struct pool *pool = memory_pool();
    int64_t live = pool->live_blocks, bytes = pool->live_bytes;
    pool->poison = NULL;
    for (int i = 0; i < 4; i++) {
        user[i] = (struct user){.pool = pool, .mark = (unsigned char)(i + 1)};
        cr_assert(pthread_create(&user[i].thread, NULL, use, &user[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(user[i].thread, NULL);
        cr_expect(user[i].ok, "thread %d found another's bytes in its block", i);
    }
    cr_expect(pool->live_blocks == live && pool->live_bytes == bytes);
}

CPU_TEST(memory, new_objects_are_zero_and_aligned)
{
    for (size_t bytes = 0; bytes < 300; bytes += 13) {
        char *object = memory_new(bytes);
        cr_assert(object && (uintptr_t)object % 16 == 0);
        for (size_t i = 0; i < bytes; i++)
            cr_expect(object[i] == 0);
        memset(object, 1, bytes);
        memory_free(object);
    }
    memory_free(NULL);
    cr_expect(!memory_new(SIZE_MAX) && !memory_new(SIZE_MAX - 16));
}

CPU_TEST(memory, a_resized_object_keeps_its_bytes_and_new_ones_are_zero)
{
    char *object = memory_resize(NULL, 3);
    memcpy(object, "abc", 3);
    object = memory_resize(object, 200);
    cr_expect(memcmp(object, "abc", 3) == 0);
    for (int i = 3; i < 200; i++)
        cr_expect(object[i] == 0);
    pool_fail_after(0, false);
    cr_expect(!memory_resize(object, 400) && object[0] == 'a', "a failure does not change it");
    pool_fail_after(-1, false);
    object = memory_resize(object, 2);
    cr_expect(memcmp(object, "ab", 2) == 0);
    memory_free(object);
}

CPU_TEST(memory, an_array_grows)
{
    int64_t *array = NULL, room = 0;
    for (int64_t i = 0; i < 1000; i++) {
        cr_assert(memory_room(&array, i, &room, sizeof *array) && room > i);
        array[i] = i;
    }
    for (int64_t i = 0; i < 1000; i++)
        cr_expect(array[i] == i);
    int64_t before = room;
    pool_fail_after(0, false);
    cr_expect(!memory_room(&array, room, &room, sizeof *array));
    pool_fail_after(-1, false);
    cr_expect(room == before && array[999] == 999);
    memory_free(array);
}

CPU_TEST(memory, texts_are_copied_and_formatted)
{
    char *copy = memory_text("copy"), *part = memory_text_part("partial", 4);
    char *made = memory_format("%d of %s, %0300d", 3, "four", 7);
    cr_expect(strcmp(copy, "copy") == 0 && strcmp(part, "part") == 0);
    cr_expect(strncmp(made, "3 of four, 000", 14) == 0 && strlen(made) == 311);
    memory_free(copy);
    memory_free(part);
    memory_free(made);
}
