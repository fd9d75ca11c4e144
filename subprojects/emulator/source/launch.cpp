/*
 * Kernel launches: the immediate checks of a device, and some that a device cannot make.
 */
#include "stream.h"
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace emulator
{

/* The limits of kernels that requested more shared memory. */
static auto &shared_limits = *new std::map<const void *, size_t>;

static size_t shared_limit(const void *kernel)
{
    auto found = shared_limits.find(kernel);
    return found == shared_limits.end() ? max_shared_unasked : found->second;
}

static cudaError_t check_shape(const Launch &launch)
{
    const dim3 &grid = launch.grid, &block = launch.block;
    uint64_t plane =
        static_cast<uint64_t>(block.x) * block.y; /* below 2^64; times z it may not be */
    bool block_fits = plane > 0 && block.z > 0 && block.z <= 64 && plane <= max_threads &&
                      plane * block.z <= max_threads;
    bool grid_fits = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffffu &&
                     grid.y <= 65535 && grid.z <= 65535;
    size_t limit = shared_limit(launch.kernel);
    if (block_fits && grid_fits && launch.shared_bytes <= limit)
        return cudaSuccess;
    complain("kernel %s, launched at %s:%d: grid (%u, %u, %u), block (%u, %u, %u), %zu bytes of "
             "shared memory of %zu: beyond the device's limits",
             launch.name, launch.site.file, launch.site.line, grid.x, grid.y, grid.z, block.x,
             block.y, block.z, launch.shared_bytes, limit);
    return launch.shared_bytes > limit ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration;
}

/* A small number, at most the threshold of dropout, 2^16, and padding, which gcc 12 does not clear
   everywhere; no memory begins there. */
static bool is_small_number(uintptr_t word)
{
    return static_cast<uint32_t>(word) <= 1 << 16;
}

/* Programs and their memory lie above 2^44; the address sanitizer maps its shadow below, where the
   multipliers that replace divisions would seem to point to it. */
static bool is_mapped(uintptr_t address)
{
    const uintptr_t mask = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1;
    return address >> 44 != 0 && address >> 47 == 0 &&
           msync(reinterpret_cast<void *>(address & ~mask), 1, MS_ASYNC) == 0;
}

void note_addresses(Pointers &all, size_t argument, const void *words, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, static_cast<const char *>(words) + at, sizeof word);
        const void *address = reinterpret_cast<const void *>(word);
        if (!is_small_number(word) && (memory_holds(address) || is_mapped(word)))
            all.push_back({address, argument, true});
    }
}

/* Checks that a pointer argument is in device memory or pinned memory, null, or just past a
   buffer. */
static cudaError_t check_pointers(const Launch &launch)
{
    for (const Pointer &pointer : launch.pointers) {
        Place place = place_of(pointer.address, 0);
        if (!pointer.address || place == Place::device || place == Place::pinned)
            continue;
        complain("kernel %s, launched at %s:%d: pointer argument %zu (%p) is %s", launch.name,
                 launch.site.file, launch.site.line, pointer.argument, pointer.address,
                 place == Place::freed ? "not inside a device allocation" : "host memory");
        return fail_for_good(cudaErrorIllegalAddress);
    }
    return cudaSuccess;
}

/* A kernel runs on the present device of the thread that launches it, which must be its stream's.
 */
static cudaError_t check_device(const Launch &launch)
{
    std::shared_ptr<CUstream_st> stream = launch.stream ? stream_of(launch.stream) : nullptr;
    if (!stream || stream->device == present_device())
        return cudaSuccess;
    complain("kernel %s, launched at %s:%d: its stream is of device %d, and the thread's is %d",
             launch.name, launch.site.file, launch.site.line, stream->device, present_device());
    return cudaErrorInvalidResourceHandle;
}

void launch_kernel(const Launch &launch, Call *call)
{
    std::shared_ptr<Call> owned(call);
    if (!settings().devices) {
        fail(cudaErrorNoDevice);
        return;
    }
    if (fail(lasting_error))
        return;
    if (fail(check_shape(launch)) || fail(check_device(launch)) || check_pointers(launch))
        return;
    faults_catch();
    Grid grid = {launch.name,         launch.site, launch.grid,    launch.block,
                 launch.shared_bytes, owned,       launch.pointers};
    enqueue(launch.stream, [grid] { run_grid(grid); });
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        static_cast<size_t>(value) > max_shared)
        return fail(cudaErrorInvalidValue);
    shared_limits[function] = std::max(static_cast<size_t>(value), max_shared_unasked);
    return lasting_error;
}
