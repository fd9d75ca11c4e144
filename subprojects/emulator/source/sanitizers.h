/*
 * The interface to the sanitizers of gcc and clang. All functions are weak: null in a program
 * without that sanitizer, whose run-time library belongs to the program and not to the emulator.
 * They need default visibility, since a hidden weak name is resolved to null when the shared
 * object is linked.
 */
#ifndef SOFTBACK_EMULATOR_SANITIZERS_H
#define SOFTBACK_EMULATOR_SANITIZERS_H

#include <stddef.h>

#pragma GCC visibility push(default)
extern "C" {
/* Address sanitizer: stacks change here; this memory may (not) be touched. */
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom,
                                                          size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom,
                                                           size_t *bytes);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *memory, size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *memory, size_t bytes);

/* Thread sanitizer: fibers are threads; what was done before a release of an address happens before
   what is done after an acquire of it; "java" memory is new from here on. */
__attribute__((weak)) void *__tsan_get_current_fiber();
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);
__attribute__((weak)) void __tsan_java_init(unsigned long begin, unsigned long bytes);
__attribute__((weak)) void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
}
#pragma GCC visibility pop

namespace emulator
{

static inline bool under_asan()
{
    return __asan_poison_memory_region != nullptr;
}
static inline bool under_tsan()
{
    return __tsan_create_fiber != nullptr;
}
static inline void poison(void *memory, size_t bytes)
{
    if (under_asan())
        __asan_poison_memory_region(memory, bytes);
}
static inline void unpoison(void *memory, size_t bytes)
{
    if (under_asan())
        __asan_unpoison_memory_region(memory, bytes);
}
static inline void order_release(void *address)
{
    if (under_tsan())
        __tsan_release(address);
}
static inline void order_acquire(void *address)
{
    if (under_tsan())
        __tsan_acquire(address);
}
/* A new address for such an order. Addresses are reused after thousands of barriers, when no thread
   waits at the old one any more. */
void *order_new();

} // namespace emulator

#endif
