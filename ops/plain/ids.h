/* Checking ids, for operations that look something up. */
#ifndef SOFTBACK_OPS_PLAIN_IDS_H
#define SOFTBACK_OPS_PLAIN_IDS_H

#include <stdint.h>

/* The position of the first id outside of least..limit-1, or -1. */
static inline int64_t first_bad_id(int64_t count, const int32_t *ids,
                                   int64_t least, int64_t limit)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < least || ids[i] >= limit)
            return i;
    return -1;
}

#endif
