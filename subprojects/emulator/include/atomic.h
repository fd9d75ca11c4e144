/*
 * Atomic functions, with relaxed memory order as on a device: code that also publishes other data
 * needs __threadfence(), and the thread sanitizer detects its absence here.
 */
#ifndef SOFTBACK_EMULATOR_ATOMIC_H
#define SOFTBACK_EMULATOR_ATOMIC_H

#include "kernel.h"
#include <string.h>

namespace emulator
{

/* Replaces *address by change(*address) and returns the old value. */
template <class Type, class Change> static inline Type atomically(Type *address, Change change)
{
    static_assert(std::is_arithmetic_v<Type> && (sizeof(Type) == 4 || sizeof(Type) == 8),
                  "atomics are for numbers of 32 and 64 bits");
    using Bits = std::conditional_t<sizeof(Type) == 4, uint32_t, uint64_t>;
    maybe_yield();
    Bits *word = reinterpret_cast<Bits *>(address);
    Bits old_bits = __atomic_load_n(word, __ATOMIC_RELAXED), new_bits;
    Type old_value;
    do {
        memcpy(&old_value, &old_bits, sizeof old_value);
        Type new_value = change(old_value);
        memcpy(&new_bits, &new_value, sizeof new_bits);
    } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return old_value;
}

} // namespace emulator

template <class Type>
static inline Type atomicAdd(Type *address, typename emulator::Same<Type>::type value)
{
    return emulator::atomically(address, [=](Type old) { return static_cast<Type>(old + value); });
}
template <class Type>
static inline Type atomicSub(Type *address, typename emulator::Same<Type>::type value)
{
    static_assert(std::is_integral_v<Type>, "atomicSub is for integers");
    return emulator::atomically(address, [=](Type old) { return static_cast<Type>(old - value); });
}
template <class Type>
static inline Type atomicMax(Type *address, typename emulator::Same<Type>::type value)
{
    static_assert(std::is_integral_v<Type>, "atomicMax is for integers");
    return emulator::atomically(address, [=](Type old) { return old < value ? value : old; });
}
template <class Type>
static inline Type atomicMin(Type *address, typename emulator::Same<Type>::type value)
{
    static_assert(std::is_integral_v<Type>, "atomicMin is for integers");
    return emulator::atomically(address, [=](Type old) { return value < old ? value : old; });
}
template <class Type>
static inline Type atomicOr(Type *address, typename emulator::Same<Type>::type value)
{
    return emulator::atomically(address, [=](Type old) { return static_cast<Type>(old | value); });
}
template <class Type>
static inline Type atomicAnd(Type *address, typename emulator::Same<Type>::type value)
{
    return emulator::atomically(address, [=](Type old) { return static_cast<Type>(old & value); });
}
template <class Type>
static inline Type atomicExch(Type *address, typename emulator::Same<Type>::type value)
{
    return emulator::atomically(address, [=](Type) { return value; });
}
template <class Type>
static inline Type atomicCAS(Type *address, typename emulator::Same<Type>::type expected,
                             typename emulator::Same<Type>::type value)
{
    static_assert(std::is_integral_v<Type>, "atomicCAS is for integers");
    return emulator::atomically(address, [=](Type old) { return old == expected ? value : old; });
}

#endif
