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
#include <vector>

#ifndef __has_builtin /* gcc before version 10 */
#define __has_builtin(name) 0
#endif

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

/* A pointer with __restrict__: if it is to constants, the kernel promises that nothing writes there
   while it runs, and a device may read stale data (stale.cpp). */
template <class Type> struct Restricted {
    Type *pointer;
    Restricted(Type *address) : pointer(address)
    {
    }
    operator Type *() const
    {
        return pointer;
    }
};

/* What a launch passes to a kernel as a pointer. */
struct Pointer {
    const void *address;
    size_t argument; /* from 1 */
    bool written;    /* may the kernel write there? */
};
typedef std::vector<Pointer> Pointers;

/* Where each restricted pointer to constants is stored. */
typedef std::vector<const void **> RestrictedPlaces;

template <class Type> void note_pointers(Pointers &all, size_t argument, Type *const &pointer)
{
    all.push_back({pointer, argument, !std::is_const_v<Type>});
}
template <class Type>
void note_pointers(Pointers &all, size_t argument, const Restricted<Type> &restricted)
{
    note_pointers(all, argument, restricted.pointer);
}

/* The words of a structure that could be addresses (launch.cpp). */
void note_addresses(Pointers &all, size_t argument, const void *words, size_t bytes);

/* Which of its members are pointers cannot be known, so all words count, and padding is cleared:
   it holds what was there before. */
template <class Type> void note_pointers(Pointers &all, size_t argument, const Type &value)
{
#if __has_builtin(__builtin_clear_padding)
    if constexpr (std::is_class_v<Type> && std::is_trivially_copyable_v<Type>) {
        Type copy = value;
        __builtin_clear_padding(&copy);
        note_addresses(all, argument, &copy, sizeof copy);
    }
#else
    (void)all, (void)argument, (void)value;
#endif
}

template <class Type> void note_restricted(RestrictedPlaces &, Type &)
{
}
template <class Type>
void note_restricted(RestrictedPlaces &all, Restricted<const Type> &restricted)
{
    all.push_back(reinterpret_cast<const void **>(&restricted.pointer));
}

/* A kernel with its arguments at the time of the launch. */
struct Call {
    virtual ~Call() = default;
    virtual void run() const = 0;
    virtual RestrictedPlaces restricted() = 0;
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
    RestrictedPlaces restricted() override
    {
        RestrictedPlaces all;
        std::apply([&](auto &...each) { (note_restricted(all, each), ...); }, arguments);
        return all;
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
    Pointers pointers; /* among and inside of the arguments */
};
void launch_kernel(const Launch &launch, Call *call);

template <class Type> struct Same {
    using type = Type; /* keeps a parameter out of template argument deduction */
};

template <class... Parameters>
void launch(const char *name, Site site, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            size_t shared_bytes, cudaStream_t stream, typename Same<Parameters>::type... arguments)
{
    Pointers pointers;
    [[maybe_unused]] size_t argument = 0;
    (note_pointers(pointers, ++argument, arguments), ...);
    launch_kernel({name, site, reinterpret_cast<const void *>(kernel), grid, block, shared_bytes,
                   stream, pointers},
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
