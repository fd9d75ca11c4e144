/*
 * cp.async: copies from device to shared memory at some time between their start and the wait for
 * the group that they belong to. In half of the blocks (in all, unless the order is random) copies
 * run as late as possible, so that a kernel that waits for too few groups reads NaN; in the other
 * half immediately, so that a kernel that starts them too early overwrites data that slower warps
 * still read.
 */
#include "emulator.h"
#include "mma.h"

namespace emulator
{

const unsigned max_pending = 512; /* copies of a thread */

struct Copy {
    void *shared;
    const void *device;
    int size, bytes; /* of `size` bytes `bytes` are read; the rest becomes 0 */
    int group;
};

/* A plain ring buffer, since the thread sanitizer instruments the functions of containers. */
static struct Pending {
    Copy copies[max_pending];
    unsigned begin, end; /* modulo max_pending */
    int group;           /* the one that is open */
} pending[max_threads];

static bool at_once;

void copy_begin_block()
{
    at_once = settings().order == Order::random && random_bits() & 1;
    for (unsigned number = 0; number < thread_count; number++) {
        pending[number].begin = pending[number].end = 0;
        pending[number].group = 0;
    }
}

/* A size that the compiler does not know makes memcpy a call, which the sanitizers check. */
static void carry_out(const Copy &copy)
{
    char *to = static_cast<char *>(copy.shared);
    size_t bytes = static_cast<size_t>(copy.bytes);
    if (bytes > 0) /* otherwise the source may be null */
        memcpy(to, copy.device, bytes);
    memset(to + bytes, 0, static_cast<size_t>(copy.size) - bytes);
}

void copy_start(int size, void *shared, const void *device, int bytes, Site site)
{
    uintptr_t addresses = reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(device);
    if (!is_shared(shared, static_cast<size_t>(size)))
        kernel_error("cp.async at %s:%d: the destination is not in shared memory", site.file,
                     site.line);
    if (addresses % static_cast<uintptr_t>(size) != 0)
        kernel_error("cp.async at %s:%d: an address is not %d-byte aligned", site.file, site.line,
                     size);
    if (bytes < 0 || bytes > size)
        kernel_error("cp.async at %s:%d: %d bytes of %d", site.file, site.line, bytes, size);
    Pending &own = pending[running_thread->number];
    Copy copy = {shared, device, size, bytes, own.group};
    if (at_once)
        carry_out(copy);
    else if (own.end - own.begin < max_pending)
        own.copies[own.end++ % max_pending] = copy;
    else
        kernel_error("cp.async at %s:%d: more than %u copies of one thread are under way",
                     site.file, site.line, max_pending);
}

void copy_commit()
{
    pending[running_thread->number].group++;
}

void copy_wait(int allowed)
{
    Pending &own = pending[running_thread->number];
    for (; own.begin != own.end; own.begin++) {
        const Copy &copy = own.copies[own.begin % max_pending];
        if (copy.group >= own.group - allowed)
            return;
        carry_out(copy);
    }
}

} // namespace emulator
