/*
 * What a kernel reads through `const T *__restrict__` comes from a cache that its own writes do not
 * reach. So where such a pointer and one that the kernel may write through point into the same
 * allocation, it reads from a copy that was made before: the result is wrong, as it may be on a
 * device.
 */
#include "emulator.h"
#include "sanitizers.h"

namespace emulator
{

static bool may_write(const Grid &grid, const char *allocation)
{
    for (const Pointer &pointer : grid.pointers) {
        char *begin;
        size_t bytes;
        if (pointer.written && memory_allocation(pointer.address, &begin, &bytes) &&
            begin == allocation)
            return true;
    }
    return false;
}

/* Aligned as in device memory, and followed by NaN; under the address sanitizer by its red zone. */
static char *copy_of(const char *allocation, size_t bytes)
{
    const size_t page = 4096, zone = under_asan() ? 0 : page;
    void *copy = nullptr;
    if (posix_memalign(&copy, page, bytes + zone))
        abort();
    memcpy(copy, allocation, bytes);
    memset(static_cast<char *>(copy) + bytes, 0xff, zone);
    return static_cast<char *>(copy);
}

StaleReads::StaleReads(const Grid &grid)
{
    for (const void **place : grid.call->restricted()) {
        char *begin;
        size_t bytes;
        if (!memory_allocation(*place, &begin, &bytes) || !may_write(grid, begin))
            continue;
        char *copy = copy_of(begin, bytes);
        changes.push_back({place, *place, copy});
        *place = copy + (static_cast<const char *>(*place) - begin);
    }
}

/* The arguments are used again if the kernel is part of a graph. */
StaleReads::~StaleReads()
{
    for (const Change &change : changes) {
        *change.place = change.before;
        free(change.copy);
    }
}

} // namespace emulator
