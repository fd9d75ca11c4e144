/* The kernels of embedding. */
#ifndef SOFTBACK_OPS_EMBEDDING_H
#define SOFTBACK_OPS_EMBEDDING_H

#include "ops/kernel.h"

struct embedding_kernels {
    /* The position of the first of `count` ids that is not in 0..V-1, or -1. */
    int64_t (*first_bad)(int64_t count, int64_t V, const void *ids);
    /* table is (V, C), y (count, C). */
    bool (*forward)(int64_t count, int64_t V, int64_t C, const void *table, const void *ids,
                    void *y);
    /* The rows of dy whose id is `padding` are left out; -1: none. */
    bool (*backward)(int64_t count, int64_t V, int64_t C, int64_t padding, const void *ids,
                     const void *dy, void *dtable);
};

#endif
