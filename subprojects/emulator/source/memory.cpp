/*
 * Device memory: a reserved range of address space, of which each allocation makes some pages
 * accessible. An allocation starts at a page, initially holds NaN (all bits set), and is followed
 * by a red zone and an inaccessible page: reading a little past the end gives NaN, writing there is
 * detected at the end of the kernel, and an access further away faults. Freed pages become
 * inaccessible and are reused only when the range is exhausted.
 */
#include "emulator.h"
#include "sanitizers.h"
#include "stream.h"
#include <map>
#include <sys/mman.h>

namespace emulator
{

const size_t page = 4096, red_zone = 256;

struct Allocation {
    size_t bytes, extent; /* requested size; size in the range */
};

static char *range; /* of settings().memory bytes, for the most, and room for closed pages */
static size_t range_bytes, used_bytes;
/* Never destroyed, since a program may free its memory while it exits. */
static auto &allocations = *new std::map<char *, Allocation>;
static auto &free_extents = *new std::map<char *, size_t>;
static auto &pinned = *new std::map<char *, size_t>; /* host memory from cudaMallocHost */
static char *next_fit;                               /* where to look for free memory first */
static char *reach;                                  /* the end of the memory ever allocated */
static int open_depth;
static size_t closings;

bool memory_holds(const void *address)
{
    return range && address >= range && address < range + range_bytes;
}

static bool reserve_range()
{
    if (range)
        return true;
    size_t bytes = static_cast<size_t>(under_tsan() ? 4 : 64) << 30;
    while (bytes < settings().memory)
        bytes *= 2;
    void *memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    faults_catch();
    range = next_fit = reach = static_cast<char *>(memory);
    range_bytes = bytes;
    free_extents[range] = bytes;
    return true;
}

static bool may_be_open()
{
    return !settings().guard || open_depth > 0;
}

/* False: the process has too many ranges with a protection of their own (vm.max_map_count). */
static bool protect(char *memory, const Allocation &allocation, bool open)
{
    return mprotect(memory, allocation.extent - page, open ? PROT_READ | PROT_WRITE : PROT_NONE) ==
           0;
}

/* With the guard, all memory that was ever allocated opens and closes as one: page by page, a
   suite would take hours. */
static void protect_all(bool open)
{
    if (reach > range)
        mprotect(range, static_cast<size_t>(reach - range),
                 open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void memory_open()
{
    if (settings().guard && open_depth++ == 0)
        protect_all(true);
}

void memory_close()
{
    if (!settings().guard || (open_depth == 1 && closings++ >= settings().guard))
        return; /* it stays open */
    if (--open_depth == 0)
        protect_all(false);
}

static std::map<char *, size_t>::iterator find_free(size_t extent)
{
    auto start = free_extents.lower_bound(next_fit);
    for (auto each = start; each != free_extents.end(); ++each)
        if (each->second >= extent)
            return each;
    for (auto each = free_extents.begin(); each != start; ++each)
        if (each->second >= extent)
            return each;
    return free_extents.end();
}

static char *take_extent(size_t extent)
{
    auto found = find_free(extent);
    if (found == free_extents.end())
        return nullptr;
    char *memory = found->first;
    size_t rest = found->second - extent;
    free_extents.erase(found);
    if (rest > 0)
        free_extents[memory + extent] = rest;
    next_fit = memory + extent;
    reach = std::max(reach, next_fit);
    return memory;
}

static void give_extent(char *memory, size_t extent)
{
    auto place = free_extents.emplace(memory, extent).first;
    auto next = std::next(place);
    if (next != free_extents.end() && memory + extent == next->first) {
        place->second += next->second;
        free_extents.erase(next);
    }
    if (place == free_extents.begin())
        return;
    auto before = std::prev(place);
    if (before->first + before->second == memory) {
        before->second += place->second;
        free_extents.erase(place);
    }
}

static cudaError_t allocate(void **pointer, size_t bytes)
{
    if (bytes > settings().memory - used_bytes || !reserve_range())
        return cudaErrorMemoryAllocation;
    size_t extent = (bytes + red_zone + page - 1) / page * page + page;
    char *memory = take_extent(extent);
    if (!memory)
        return cudaErrorMemoryAllocation;
    Allocation allocation = {bytes, extent};
    if (!protect(memory, allocation, true)) {
        give_extent(memory, extent);
        return cudaErrorMemoryAllocation;
    }
    unpoison(memory, extent);
    memset(memory, 0xff, extent - page);
    poison(memory + bytes, extent - bytes);
    protect(memory, allocation, may_be_open());
    allocations[memory] = allocation;
    used_bytes += bytes;
    *pointer = memory;
    return cudaSuccess;
}

static void release(std::map<char *, Allocation>::iterator place)
{
    char *memory = place->first;
    Allocation allocation = place->second;
    allocations.erase(place);
    used_bytes -= allocation.bytes;
    poison(memory, allocation.extent);
    madvise(memory, allocation.extent, MADV_DONTNEED);
    protect(memory, allocation, false);
    give_extent(memory, allocation.extent);
}

/* The entry of a map of ranges that contains the address, or its end. */
template <class Map> static typename Map::iterator entry_before(Map &map, const void *address)
{
    auto next = map.upper_bound(static_cast<char *>(const_cast<void *>(address)));
    return next == map.begin() ? map.end() : std::prev(next);
}

Place place_of(const void *pointer, size_t bytes)
{
    const char *begin = static_cast<const char *>(pointer);
    auto device = entry_before(allocations, pointer);
    if (device != allocations.end() && begin + bytes <= device->first + device->second.bytes)
        return Place::device;
    if (memory_holds(pointer))
        return Place::freed;
    auto host = entry_before(pinned, pointer);
    if (host != pinned.end() && begin + bytes <= host->first + host->second)
        return Place::pinned;
    return Place::host;
}

bool memory_allocation(const void *pointer, char **begin, size_t *bytes)
{
    auto place = entry_before(allocations, pointer);
    if (place == allocations.end() || place_of(pointer, 0) != Place::device)
        return false;
    *begin = place->first;
    *bytes = place->second.bytes;
    return true;
}

/* How far past its end an allocation was written; 0 if it was not. */
static size_t written_past_end(char *memory, const Allocation &allocation)
{
    if (under_asan())
        return 0; /* which detects it immediately */
    char *zone = memory + allocation.bytes;
    size_t bytes = allocation.extent - page - allocation.bytes, past = bytes;
    memory_open();
    /* All bytes are alike if the first is right and each equals the next. */
    if (zone[0] == -1 && memcmp(zone, zone + 1, bytes - 1) == 0)
        past = 0;
    while (past > 0 && zone[past - 1] == -1)
        past--;
    memset(zone, 0xff, past);
    memory_close();
    return past;
}

void memory_check(const Grid &grid)
{
    for (const Pointer &pointer : grid.pointers) {
        auto place = entry_before(allocations, pointer.address);
        if (place == allocations.end() || place_of(pointer.address, 0) != Place::device)
            continue;
        size_t past = written_past_end(place->first, place->second);
        if (past == 0)
            continue;
        complain("kernel %s, launched at %s:%d, wrote up to %zu bytes past the end of a buffer of "
                 "%zu bytes",
                 grid.name.c_str(), grid.site.file, grid.site.line, past, place->second.bytes);
        fail_for_good(cudaErrorIllegalAddress);
    }
}

void memory_reset()
{
    while (!allocations.empty())
        release(allocations.begin());
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    if (cudaError_t error = capture_refuses())
        return fail(error);
    if (lasting_error)
        return lasting_error;
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    *pointer = nullptr;
    return bytes ? fail(allocate(pointer, bytes)) : cudaSuccess;
}

/* Freeing waits for the device, as the real one does. */
cudaError_t cudaFree(void *pointer)
{
    if (!pointer)
        return cudaSuccess;
    if (cudaError_t error = capture_refuses())
        return fail(error);
    run_everything();
    auto place = allocations.find(static_cast<char *>(pointer));
    if (place == allocations.end()) {
        complain("cudaFree(%p): not the start of a device allocation, or already freed", pointer);
        return fail(cudaErrorInvalidValue);
    }
    if (size_t past = written_past_end(place->first, place->second)) {
        complain("a buffer of %zu bytes was written up to %zu bytes past its end",
                 place->second.bytes, past);
        fail_for_good(cudaErrorIllegalAddress);
    }
    release(place);
    return lasting_error;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    if (cudaError_t error = capture_refuses())
        return fail(error);
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    *pointer = bytes ? malloc(bytes) : nullptr;
    if (!*pointer)
        return bytes ? fail(cudaErrorMemoryAllocation) : cudaSuccess;
    pinned[static_cast<char *>(*pointer)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer)
{
    if (!pointer)
        return cudaSuccess;
    if (cudaError_t error = capture_refuses())
        return fail(error);
    run_everything();
    if (!pinned.erase(static_cast<char *>(pointer))) {
        complain("cudaFreeHost(%p): not from cudaMallocHost, or already freed", pointer);
        return fail(cudaErrorInvalidValue);
    }
    free(pointer);
    return lasting_error;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    *free = settings().memory - used_bytes;
    *total = settings().memory;
    return lasting_error;
}
