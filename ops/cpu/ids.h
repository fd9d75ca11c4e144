/* Checks ids in a kernel, since only kernels can read data on a device. */
#ifndef SOFTBACK_OPS_CPU_IDS_H
#define SOFTBACK_OPS_CPU_IDS_H

#include "ops/cpu/real.h"

/* The position of the first id outside of least..limit-1, or -1. */
static inline int64_t first_bad_id(int64_t count, const int32_t *ids, int64_t least, int64_t limit)
{
    enum { BLOCK = 1024 };
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t end = start + BLOCK < count ? start + BLOCK : count;
        int bad = 0;
        for (int64_t i = start; i < end; i++)
            bad |= (ids[i] < least) | (ids[i] >= limit);
        for (int64_t i = start; bad && i < end; i++)
            if (ids[i] < least || ids[i] >= limit)
                return i;
    }
    return -1;
}

#endif
