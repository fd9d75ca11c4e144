/*
 * Operations of the 32 lanes of a warp: shuffles, votes, __syncwarp. The lanes of the mask meet;
 * when the last one arrives, they exchange values and continue. Reading from a lane that is not in
 * the mask or has ended is undefined on a device; here it gives a value with all bits set (a NaN).
 */
#ifndef SOFTBACK_EMULATOR_WARP_H
#define SOFTBACK_EMULATOR_WARP_H

#include "kernel.h"
#include <string.h>

namespace emulator
{

uint64_t shuffle(const char *what, unsigned mask, uint64_t value, int source, Site site);
unsigned ballot(const char *what, unsigned mask, bool predicate, Site site);
void warp_barrier(unsigned mask, Site site);

static inline int lane()
{
    return position.lane;
}

template <class Type>
static inline Type shuffle_value(const char *what, unsigned mask, Type value, int source, Site site)
{
    static_assert(std::is_arithmetic_v<Type> && (sizeof(Type) == 4 || sizeof(Type) == 8),
                  "shuffles are for numbers of 32 and 64 bits");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = shuffle(what, mask, bits, source, site);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The first lane of this lane's group of `width`. */
static inline int group_begin(int width)
{
    return lane() & ~(width - 1);
}

} // namespace emulator

template <class Type>
static inline Type __shfl_sync(unsigned mask, Type value, int source, int width = 32,
                               emulator::Site site = {})
{
    int from = emulator::group_begin(width) | (source & (width - 1));
    return emulator::shuffle_value("__shfl_sync", mask, value, from, site);
}

/* Beyond the end of its group, a lane keeps its own value. */
template <class Type>
static inline Type __shfl_xor_sync(unsigned mask, Type value, int flip, int width = 32,
                                   emulator::Site site = {})
{
    int from = emulator::lane() ^ flip;
    if (from >= emulator::group_begin(width) + width)
        from = emulator::lane();
    return emulator::shuffle_value("__shfl_xor_sync", mask, value, from, site);
}

template <class Type>
static inline Type __shfl_down_sync(unsigned mask, Type value, unsigned distance, int width = 32,
                                    emulator::Site site = {})
{
    int from = emulator::lane() + static_cast<int>(distance);
    if (from >= emulator::group_begin(width) + width)
        from = emulator::lane();
    return emulator::shuffle_value("__shfl_down_sync", mask, value, from, site);
}

template <class Type>
static inline Type __shfl_up_sync(unsigned mask, Type value, unsigned distance, int width = 32,
                                  emulator::Site site = {})
{
    int from = emulator::lane() - static_cast<int>(distance);
    if (from < emulator::group_begin(width))
        from = emulator::lane();
    return emulator::shuffle_value("__shfl_up_sync", mask, value, from, site);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, emulator::Site site = {})
{
    return emulator::ballot("__ballot_sync", mask, predicate != 0, site);
}
static inline int __any_sync(unsigned mask, int predicate, emulator::Site site = {})
{
    return emulator::ballot("__any_sync", mask, predicate != 0, site) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, emulator::Site site = {})
{
    return emulator::ballot("__all_sync", mask, predicate == 0, site) == 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, emulator::Site site = {})
{
    emulator::warp_barrier(mask, site);
}

#endif
