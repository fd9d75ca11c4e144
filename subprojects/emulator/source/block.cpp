/*
 * A block runs as one fiber for each of its threads, on one processor of the host; blocks run in
 * sequence. A thread runs until it waits at a barrier or in its warp; then another thread
 * continues. When no thread can continue, either all have ended or the block is deadlocked; the
 * host, which started the first thread, distinguishes these cases.
 *
 * Blocks run in random order, since a device guarantees none: a kernel that relies on block 0
 * ending before block 1 fails here with some seed.
 */
#include "emulator.h"
#include "sanitizers.h"
#include <map>
#include <numeric>

namespace emulator
{

Position position;
Thread threads[max_threads];
Thread *running_thread;
unsigned thread_count;

static unsigned ended_count;
static Fiber *idle_fibers[max_threads];
static unsigned idle_count;

/* Addresses that represent orders of events: all threads run after the launch, the host continues
   after their ends, and fences are in sequence. */
static char launch_order[8], end_order[8], fence_order[8];

void *order_new()
{
    static char addresses[4096][8];
    static unsigned next;
    return addresses[next++ % 4096];
}

static void thread_main();

/* The thread sanitizer treats each fiber as a thread and reports unordered accesses. So no fiber
   may run threads of two consecutive blocks: two sets of fibers alternate. The host creates all of
   them before the first runs, because creation of a thread orders it after its creator. */
static Fiber *watched_fiber(unsigned number)
{
    static Fiber *sets[2][max_threads];
    Fiber *&fiber = sets[blocks_begun % 2][number];
    if (!fiber)
        fiber = fiber_new(thread_main);
    return fiber;
}

static Fiber *fiber_take()
{
    return idle_count > 0 ? idle_fibers[--idle_count] : fiber_new(thread_main);
}

static void become(Thread *thread)
{
    running_thread = thread;
    position.thread = thread->index;
    position.lane = static_cast<int>(thread->number % 32);
}

static void resume(Thread *thread)
{
    if (!thread->fiber)
        thread->fiber = fiber_take();
    become(thread);
    fiber_switch(thread->fiber);
}

void let_others_run()
{
    Thread *next = schedule_next();
    if (!next)
        fiber_switch_to_host(); /* which reports the deadlock and does not return */
    else if (next != running_thread)
        resume(next);
}

/* The fiber of a thread that has ended continues with a thread that has not begun, if one is next.
   This saves the switch and makes kernels without barriers several times faster. */
static void thread_ended()
{
    Thread *self = running_thread;
    self->state = Thread::ended;
    ended_count++;
    warp_thread_ended(self);
    Thread *next = schedule_next();
    if (!under_tsan()) {
        Fiber *fiber = self->fiber;
        self->fiber = nullptr;
        if (next && !next->fiber) {
            next->fiber = fiber;
            become(next);
            return;
        }
        idle_fibers[idle_count++] = fiber;
    }
    if (next)
        resume(next);
    else
        fiber_switch_to_host();
}

static void thread_main()
{
    for (;;) {
        order_acquire(launch_order);
        running_grid->call->run();
        order_release(end_order);
        thread_ended();
    }
}

static struct {
    unsigned arrived, trues;
    Thread *first;
    void *order;
    int result;
} meeting;

static int barrier_result(Barrier kind)
{
    switch (kind) {
    case barrier_count:
        return static_cast<int>(meeting.trues);
    case barrier_and:
        return meeting.trues == thread_count;
    case barrier_or:
        return meeting.trues > 0;
    case barrier_plain:
        break;
    }
    return 0;
}

/* Every thread of the block must reach the same barrier. If some have ended or wait at another
   barrier, CUDA's behaviour is undefined; here it is an error. */
int barrier(Barrier kind, bool predicate, Site site)
{
    static const char *const names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                        "__syncthreads_or"};
    Thread *self = running_thread;
    self->what = names[kind];
    self->site = site;
    if (meeting.arrived == 0) {
        meeting.first = self;
        meeting.order = order_new();
    }
    const Thread &first = *meeting.first;
    if (first.site.line != site.line || first.site.file != site.file)
        kernel_error("%s at %s:%d, but thread (%u, %u, %u) waits in %s at %s:%d", self->what,
                     site.file, site.line, first.index.x, first.index.y, first.index.z, first.what,
                     first.site.file, first.site.line);
    meeting.arrived++;
    meeting.trues += predicate;
    void *order = meeting.order; /* the next barrier uses another address */
    order_release(order);
    self->state = Thread::at_barrier;
    if (meeting.arrived == thread_count) {
        meeting.result = barrier_result(kind);
        meeting.arrived = meeting.trues = 0;
        schedule_all();
    }
    let_others_run();
    order_acquire(order);
    return meeting.result;
}

void maybe_yield()
{
    if (settings().order != Order::random || random_bits() % 8 != 0)
        return;
    schedule(running_thread);
    let_others_run();
}

/* For the sanitizer, every fence is ordered after all earlier ones, which is stronger than on a
   device. */
void fence()
{
    order_acquire(fence_order);
    order_release(fence_order);
    maybe_yield();
}

static std::string describe(const Thread &thread)
{
    if (thread.state == Thread::ended)
        return "have ended";
    return std::string("wait in ") + thread.what + " at " + thread.site.file + ":" +
           std::to_string(thread.site.line);
}

static void report_deadlock()
{
    std::map<std::string, unsigned> counts;
    for (unsigned number = 0; number < thread_count; number++) {
        counts[describe(threads[number])]++;
        if (threads[number].state != Thread::ended)
            position.thread = threads[number].index;
    }
    std::string groups;
    for (const auto &group : counts)
        groups += "\n    " + std::to_string(group.second) + " " + group.first;
    kernel_error("deadlock: the threads of the block wait for each other:%s", groups.c_str());
}

static void run_block(const Grid &grid, uint64_t number)
{
    position.block = {static_cast<unsigned>(number % grid.size.x),
                      static_cast<unsigned>(number / grid.size.x % grid.size.y),
                      static_cast<unsigned>(number / grid.size.x / grid.size.y)};
    shared_begin_block(grid.shared_bytes);
    copy_begin_block();
    warp_begin_block();
    schedule_block();
    for (unsigned i = 0; i < thread_count; i++)
        threads[i].fiber = under_tsan() ? watched_fiber(i) : nullptr;
    schedule_all();
    ended_count = meeting.arrived = meeting.trues = 0;
    resume(schedule_next());
    if (!kernel_failed && ended_count < thread_count)
        report_deadlock();
    if (!kernel_failed)
        shared_check();
}

/* Runs all blocks once: a step that is coprime to the number of blocks visits each of them. */
static void run_blocks(const Grid &grid)
{
    uint64_t count = static_cast<uint64_t>(grid.size.x) * grid.size.y * grid.size.z;
    uint64_t block = 0, step = 1;
    if (settings().order == Order::reverse) {
        block = count - 1;
        step = count - 1;
    } else if (settings().order == Order::random) {
        block = random_bits() % count;
        step = random_bits() % count;
        while (std::gcd(step, count) != 1)
            step = (step + 1) % count;
    }
    for (uint64_t done = 0; done < count && !kernel_failed; done++) {
        run_block(grid, block);
        block = (block + step) % count;
    }
}

static void number_threads(const Grid &grid)
{
    thread_count = grid.block.x * grid.block.y * grid.block.z;
    for (unsigned number = 0; number < thread_count; number++) {
        threads[number].number = number;
        threads[number].index = {number % grid.block.x, number / grid.block.x % grid.block.y,
                                 number / grid.block.x / grid.block.y};
    }
    position.block_size = grid.block;
    position.grid_size = grid.size;
}

/* The threads of a failed kernel are abandoned; their fibers are restarted. */
static void abandon_threads()
{
    for (unsigned number = 0; number < thread_count; number++) {
        Fiber *fiber = threads[number].fiber;
        if (!fiber)
            continue;
        fiber_restart(fiber);
        if (!under_tsan())
            idle_fibers[idle_count++] = fiber;
    }
}

void run_grid(const Grid &grid)
{
    if (lasting_error)
        return;
    work.kernels++;
    running_grid = &grid;
    kernel_failed = false;
    StaleReads stale(grid);
    number_threads(grid);
    order_release(launch_order);
    run_blocks(grid);
    order_acquire(end_order);
    if (kernel_failed)
        abandon_threads();
    running_grid = nullptr;
    memory_check(grid);
}

} // namespace emulator
