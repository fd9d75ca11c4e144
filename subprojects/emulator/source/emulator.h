/*
 * The internals of the emulator. Kernels and launching code include cuda_runtime.h; this header is
 * for the emulator's own files, from the bottom up:
 *
 *   settings    the environment variables
 *   error       messages, the last error and the sticky error
 *   fiber       stacks and the switch between them
 *   scheduler   which of a block's threads runs next
 *   block       a block's threads: start, barrier, end; a grid's blocks
 *   warp, mma   what the lanes of a warp do together
 *   rounding    errors of a device's functions and sums
 *   shared, copy   shared memory; cp.async
 *   memory, fault  device memory; errors for kernels that access other memory
 *   stale       what a kernel reads through __restrict__ while it writes it
 *   stream, event, graph   queues of work, and their recordings
 *   launch, transfer, device, blas   the rest of the host interface
 *
 * Only one host thread at a time may call the emulator. None of these files may be compiled with
 * -fsanitize=thread: they move values between threads as hardware does, and report fibers
 * and barriers to the sanitizer themselves.
 */
#ifndef SOFTBACK_EMULATOR_EMULATOR_H
#define SOFTBACK_EMULATOR_EMULATOR_H

#ifdef __SANITIZE_THREAD__
#error "the emulator's own files must be compiled without -fsanitize=thread"
#endif

#include "cuda_runtime.h"
#include "emulator_work.h"
#include <functional>
#include <memory>
#include <stdint.h>
#include <string>
#include <vector>

namespace emulator
{

const int max_threads = 1024; /* in a block */
const int max_warps = max_threads / 32;
const size_t max_shared = 227 << 10;        /* in a block, on request (compute capability 9.0) */
const size_t max_shared_unasked = 48 << 10; /* otherwise, and of static shared memory */

/*
 * settings.cpp. The environment, read once:
 *   SOFTBACK_EMULATOR_SEED=n      the seed of all scheduling (default 1)
 *   SOFTBACK_EMULATOR_ORDER=random|forward|reverse   the order of blocks, warps and lanes
 *   SOFTBACK_EMULATOR_MEMORY=n    bytes of device memory (default 64 GiB, with TSan 4 GiB)
 *   SOFTBACK_EMULATOR_DEVICES=n   show n devices (default 1), which share all memory; 0: behave as
 *                                 a machine without a device
 *   SOFTBACK_EMULATOR_LAZY=0      run work when it is queued, not when the host waits for it
 *   SOFTBACK_EMULATOR_GUARD=n     host code that touches device memory dies of a segmentation
 *                                 fault, until n kernels and copies have run: each takes longer
 *   SOFTBACK_EMULATOR_ROUNDING=1  functions and sums are as inexact as on a device (rounding.cpp)
 */
enum class Order { random, forward, reverse };
struct Settings {
    uint64_t seed;
    Order order;
    size_t memory, guard;
    int devices;
    bool lazy, rounding;
};
const Settings &settings();

int present_device(); /* device.cpp: of the calling thread */

/* The next random number of the scheduling (xorshift64*, Vigna 2016). */
unsigned random_bits();

/* error.cpp. A kernel's error is sticky: every later call returns it, until cudaDeviceReset. */
struct Grid;
extern const Grid *running_grid; /* null while no kernel runs */
extern bool kernel_failed;
extern cudaError_t lasting_error;
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
cudaError_t fail(cudaError_t error); /* also sets the last error; returns it */
cudaError_t fail_for_good(cudaError_t error);
void forget_errors();

/* fiber.cpp */
struct Fiber;
Fiber *fiber_new(void (*entry)());
void fiber_restart(Fiber *fiber); /* the next switch to it begins at its entry again */
void fiber_switch(Fiber *to);
void fiber_switch_to_host();
bool fiber_is_host();                          /* is this the host's own stack? */
bool fiber_stack_is_full(const void *address); /* is this where it would grow next? */

/* A CUDA thread, and its waiting state. */
struct Thread {
    uint3 index;     /* threadIdx */
    unsigned number; /* the same as one number: the warp is number / 32, the lane number % 32 */
    enum State { ready, at_barrier, in_warp, ended } state;
    Fiber *fiber; /* null until the thread first runs */
    /* What it waits in. */
    const char *what;
    Site site;
    unsigned mask;
    /* Values exchanged with other lanes. */
    uint64_t value, result;
    int source; /* of a shuffle: the lane to read from */
    const void *operands;
    void *order; /* for the thread sanitizer */
};
extern Thread threads[max_threads];
extern Thread *running_thread;
extern unsigned thread_count;

/* scheduler.cpp */
void schedule_block();         /* clears the ready threads, chooses a new order */
void schedule_all();           /* every thread of the block is ready */
void schedule(Thread *thread); /* this one is */
Thread *schedule_next();       /* takes one that is ready; null if none is */

/* block.cpp */
struct Grid {
    std::string name;
    Site site; /* of the launch */
    dim3 size, block;
    size_t shared_bytes;
    std::shared_ptr<Call> call;
    Pointers pointers;
};
void run_grid(const Grid &grid);
void let_others_run(); /* the running thread waits until it becomes ready */

/* warp.cpp. The lanes of the mask meet; the last one to arrive calls `exchange` on all lanes
   (absent lanes are null), and then all continue. */
typedef void (*Exchange)(Thread *const lanes[32]);
void warp_begin_block();
void warp_meet(const char *what, unsigned mask, Site site, Exchange exchange);
void warp_thread_ended(Thread *thread);

/* rounding.cpp. sum + the terms a[i] b[i], at most 16 of them, as a tensor core adds them. */
float tensor_core_sum(float sum, const float *a, ptrdiff_t a_step, const float *b, ptrdiff_t b_step,
                      int terms);

/* shared.cpp, copy.cpp */
void shared_begin_block(size_t dynamic_bytes);
void shared_check(); /* has the block written between its variables? */
bool is_shared(const void *pointer, size_t bytes);
void copy_begin_block();
void fill_unseen(void *memory, size_t bytes); /* with 0xff, unseen by the sanitizers */

/* memory.cpp */
enum class Place { host, pinned, device, freed };
Place place_of(const void *pointer, size_t bytes);
void memory_open(); /* the device runs: its memory is accessible */
void memory_close();
void memory_check(const Grid &grid); /* has a kernel written past the end of an allocation? */
void memory_reset();
bool memory_allocation(const void *pointer, char **begin, size_t *bytes); /* that it points into */
bool memory_holds(const void *address); /* in the range reserved for device memory? */
void faults_catch();                    /* a kernel's segmentation fault becomes a kernel error */

/* stale.cpp. From its making to its end, restricted pointers to constants of the grid point to a
   copy of their allocation, if the grid may also write to it. */
class StaleReads
{
  public:
    explicit StaleReads(const Grid &grid);
    ~StaleReads();
    StaleReads(const StaleReads &) = delete;

  private:
    struct Change {
        const void **place, *before;
        char *copy;
    };
    std::vector<Change> changes;
};

extern emulator_work work; /* device.cpp: counts what the others do */

/* stream.cpp */
typedef std::function<void()> Task;
cudaError_t enqueue(cudaStream_t stream, Task task);
cudaError_t run_everything();
void streams_reset();

} // namespace emulator

#endif
