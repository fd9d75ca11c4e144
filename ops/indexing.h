/* The kernels that read or write ids: embedding, gather and topk. */
#ifndef SOFTBACK_OPS_INDEXING_H
#define SOFTBACK_OPS_INDEXING_H

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

struct gather_kernels {
    /* The position of the first of `rows` ids that is not in 0..C-1, or -1. */
    int64_t (*first_bad)(int64_t rows, int64_t C, const void *ids);
    /* x is (rows, C), y (rows). */
    bool (*forward)(int64_t rows, int64_t C, const void *x, const void *ids, void *y);
    bool (*backward)(int64_t rows, int64_t C, const void *ids, const void *dy, void *dx);
};

struct topk_kernels {
    /* x is (rows, C), y and ids are (rows, k). */
    bool (*forward)(int64_t rows, int64_t C, int64_t k, const void *x, void *y, int32_t *ids);
    /* Adds to dx. */
    bool (*backward)(int64_t rows, int64_t C, int64_t k, const int32_t *ids, const void *dy,
                     void *dx);
};

#endif
