#include "ops/indexing.h"
#include "ops/plain/ids.h"
#include "ops/plain/real.h"

static int64_t embedding_first_bad(int64_t count, int64_t V, const void *ids)
{
    return first_bad_id(count, ids, 0, V);
}

/* y[i] = table[ids[i]] */
static bool embedding_forward(int64_t count, int64_t V, int64_t C,
                              const void *table_, const void *ids_, void *y_)
{
    const real *table = table_;
    const int32_t *ids = ids_;
    real *y = y_;
    (void)V;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C; c++)
            y[i * C + c] = table[ids[i] * C + c];
    return true;
}

/* dtable[v] = sum of dy[i] over the i with ids[i] = v, in the order of i;
   nothing for v = padding */
static bool embedding_backward(int64_t count, int64_t V, int64_t C,
                               int64_t padding, const void *ids_,
                               const void *dy_, void *dtable_)
{
    const int32_t *ids = ids_;
    const real *dy = dy_;
    real *dtable = dtable_;
    (void)V;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C && ids[i] != padding; c++)
            dtable[ids[i] * C + c] += dy[i * C + c];
    return true;
}

KERNELS(embedding) = {embedding_first_bad, embedding_forward,
                      embedding_backward};
