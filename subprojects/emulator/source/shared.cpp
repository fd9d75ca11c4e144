/*
 * Shared memory. It holds NaN (all bits set) at the start of each block, so that uninitialised
 * reads spoil the result. A red zone follows each variable; the address sanitizer checks it, or
 * else it is checked at the end of the block. A variable has exactly its declared alignment, so
 * that a vector load from an array of float fails here as it may on a device.
 */
#include "emulator.h"
#include "sanitizers.h"

namespace emulator
{

const size_t red_zone = 64;

alignas(1024) char shared_memory[max_shared + 128 * red_zone];
uint64_t blocks_begun;
static size_t used, static_bytes, dynamic_bytes;
static std::vector<size_t> red_zones; /* their offsets */

/* Volatile, so that compilers do not call memset, which the thread sanitizer would report as a
   write by the running thread. */
__attribute__((no_sanitize("address"))) void fill_unseen(void *memory, size_t bytes)
{
    char *end = static_cast<char *>(memory) + bytes;
    volatile char *byte = static_cast<char *>(memory);
    for (; byte != end && reinterpret_cast<uintptr_t>(byte) % 8 != 0; byte++)
        *byte = -1;
    for (; end - byte >= 8; byte += 8)
        *reinterpret_cast<volatile uint64_t *>(const_cast<char *>(byte)) = ~UINT64_C(0);
    for (; byte != end; byte++)
        *byte = -1;
}

static void allot(size_t bytes)
{
    unpoison(shared_memory + used, bytes);
    fill_unseen(shared_memory + used, bytes + red_zone);
    used += bytes;
    red_zones.push_back(used);
    used += red_zone;
}

/* For the thread sanitizer, shared memory of each block is new memory. */
static void renew_for_tsan()
{
    if (!__tsan_java_init || !__tsan_java_alloc)
        return;
    unsigned long begin = reinterpret_cast<unsigned long>(shared_memory);
    static bool known;
    if (!known)
        __tsan_java_init(begin, sizeof shared_memory);
    known = true;
    __tsan_java_alloc(begin, blocks_begun > 0 ? (used + 7) / 8 * 8 : sizeof shared_memory);
}

void shared_begin_block(size_t bytes)
{
    renew_for_tsan();
    poison(shared_memory, blocks_begun > 0 ? used : sizeof shared_memory);
    blocks_begun++;
    used = static_bytes = 0;
    dynamic_bytes = bytes;
    red_zones.clear();
    allot(bytes);
}

void shared_allot(SharedPlace *place, size_t bytes, size_t alignment)
{
    used = (used + alignment - 1) / alignment * alignment;
    if (alignment < 16 && used % 16 == 0)
        used += alignment;
    static_bytes += bytes;
    if (static_bytes > max_shared_unasked || static_bytes + dynamic_bytes > max_shared)
        kernel_error("%zu bytes of static and %zu of dynamic shared memory: the limits are %zu of "
                     "static and %zu of both",
                     static_bytes, dynamic_bytes, max_shared_unasked, max_shared);
    place->block = blocks_begun;
    place->offset = used;
    allot(bytes);
}

__attribute__((no_sanitize("address"))) void shared_check()
{
    for (size_t zone : red_zones)
        for (size_t i = 0; i < red_zone; i++)
            if (shared_memory[zone + i] != -1) {
                kernel_error("the block wrote %zu bytes past the end of a shared variable", i + 1);
                return;
            }
}

bool is_shared(const void *pointer, size_t bytes)
{
    const char *byte = static_cast<const char *>(pointer);
    return byte >= shared_memory && byte + bytes <= shared_memory + sizeof shared_memory;
}

} // namespace emulator
