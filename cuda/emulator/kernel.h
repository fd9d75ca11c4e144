/*
 * The device side of CUDA: threadIdx and similar variables, shared memory, barriers and fences; and
 * kernel launches.
 */
#ifndef SOFTBACK_EMULATOR_KERNEL_H
#define SOFTBACK_EMULATOR_KERNEL_H

#include "cuda_runtime_api.h"
#include "vector_types.h"
#include <stdint.h>
#include <tuple>
#include <type_traits>
#include <utility>

namespace emulator
{

/* A place in the source. As a default argument it is the place of the call. */
struct Site {
    const char *file;
    int line;
    Site(const char *where = __builtin_FILE(), int number = __builtin_LINE())
        : file(where), line(number)
    {
    }
};

/* Of the thread that runs now. */
struct Position {
    uint3 thread, block;
    dim3 block_size, grid_size;
    int lane;
};
extern Position position;

/* Ends the kernel with one message and cudaErrorLaunchFailure. */
[[gnu::format(printf, 1, 2)]] void kernel_error(const char *format, ...);

/* Shared memory: first the launch's dynamic part, then each SHARED variable behind a red zone. A
   variable is allocated again in every block: `block` counts them. */
struct SharedPlace {
    uint64_t block;
    size_t offset;
};
extern uint64_t blocks_begun;
extern char shared_memory[];
void shared_allot(SharedPlace *place, size_t bytes, size_t alignment);

template <class Type>
static inline Type &shared_variable(SharedPlace &place, size_t alignment = alignof(Type))
{
    if (place.block != blocks_begun)
        shared_allot(&place, sizeof(Type), alignment);
    return *reinterpret_cast<Type *>(shared_memory + place.offset);
}

enum Barrier { barrier_plain, barrier_count, barrier_and, barrier_or };
int barrier(Barrier kind, bool predicate, Site site);
void fence();
void maybe_yield(); /* at an atomic or a fence another thread may go first */

/* A kernel with its arguments at the time of the launch. */
struct Call {
    virtual ~Call() = default;
    virtual void run() const = 0;
};

template <class... Parameters> struct CallOf final : Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
    CallOf(void (*function)(Parameters...), Parameters... values)
        : kernel(function), arguments(values...)
    {
    }
    void run() const override
    {
        call(std::index_sequence_for<Parameters...>());
    }
    template <size_t... Index> void call(std::index_sequence<Index...>) const
    {
        kernel(std::get<Index>(arguments)...);
    }
};

struct Launch {
    const char *name;
    Site site;
    const void *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
    const void *const *pointers; /* those arguments that are pointers */
    size_t pointer_count;
};
void launch_kernel(const Launch &launch, const Call *call);

template <class Type> struct Same {
    using type = Type; /* keeps a parameter out of template argument deduction */
};

template <class... Parameters>
void launch(const char *name, Site site, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            size_t shared_bytes, cudaStream_t stream, typename Same<Parameters>::type... arguments)
{
    const void *pointers[sizeof...(Parameters) + 1];
    size_t count = 0;
    [[maybe_unused]] auto note = [&](auto argument) {
        if constexpr (std::is_pointer_v<decltype(argument)>)
            pointers[count++] = argument;
    };
    (note(arguments), ...);
    launch_kernel({name, site, reinterpret_cast<const void *>(kernel), grid, block, shared_bytes,
                   stream, pointers, count},
                  new CallOf<Parameters...>(kernel, arguments...));
}

} // namespace emulator

[[maybe_unused]] static constexpr const uint3 &threadIdx = emulator::position.thread;
[[maybe_unused]] static constexpr const uint3 &blockIdx = emulator::position.block;
[[maybe_unused]] static constexpr const dim3 &blockDim = emulator::position.block_size;
[[maybe_unused]] static constexpr const dim3 &gridDim = emulator::position.grid_size;
[[maybe_unused]] static constexpr int warpSize = 32;

static inline void __syncthreads(emulator::Site site = {})
{
    emulator::barrier(emulator::barrier_plain, false, site);
}
static inline int __syncthreads_count(int predicate, emulator::Site site = {})
{
    return emulator::barrier(emulator::barrier_count, predicate != 0, site);
}
static inline int __syncthreads_and(int predicate, emulator::Site site = {})
{
    return emulator::barrier(emulator::barrier_and, predicate != 0, site);
}
static inline int __syncthreads_or(int predicate, emulator::Site site = {})
{
    return emulator::barrier(emulator::barrier_or, predicate != 0, site);
}
static inline void __threadfence()
{
    emulator::fence();
}
static inline void __threadfence_block()
{
    emulator::fence();
}
static inline void __trap()
{
    emulator::kernel_error("__trap()");
}

#endif
