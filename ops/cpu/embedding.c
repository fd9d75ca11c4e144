#include "ops/cpu/ids.h"
#include "ops/cpu/real.h"
#include "ops/indexing.h"

static int64_t embedding_first_bad(int64_t count, int64_t V, const void *ids)
{
    return first_bad_id(count, ids, 0, V);
}

static bool embedding_forward(int64_t count, int64_t V, int64_t C, const void *table_,
                              const void *ids_, void *y_)
{
    (void)V; /* first_bad has checked the ids */
    const real *table = table_;
    const int32_t *ids = ids_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (count * C > PARALLEL_WORK)
    for (int64_t i = 0; i < count; i++)
        memcpy(y + i * C, table + ids[i] * C, (size_t)C * sizeof *y);
    return true;
}

/* y_i = table[ids_i]. An id may occur twice, so threads share the work by columns and add in the
   order of i. */
static bool embedding_backward(int64_t count, int64_t V, int64_t C, int64_t padding,
                               const void *ids_, const void *dy_, void *dtable_)
{
    enum { BLOCK = 32 };
    (void)V;
    const int32_t *ids = ids_;
    const real *dy = dy_;
    real *dtable = dtable_;
#pragma omp parallel for schedule(static) if (count * C > PARALLEL_WORK)
    for (int64_t block = 0; block < (C + BLOCK - 1) / BLOCK; block++) {
        int64_t start = block * BLOCK, end = start + BLOCK < C ? start + BLOCK : C;
        for (int64_t i = 0; i < count; i++) {
            if (ids[i] == padding)
                continue;
            const real *dy_row = dy + i * C;
            real *row = dtable + ids[i] * C;
#pragma omp simd
            for (int64_t c = start; c < end; c++)
                row[c] += dy_row[c];
        }
    }
    return true;
}

KERNELS(embedding) = {embedding_first_bad, embedding_forward, embedding_backward};
