/* Batches of windows of text. */
#include "models/data/batch_parts.h"
#include "models/data/windows.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

enum { WINDOW_IN, WINDOW_OUT, WINDOW_LENGTHS, WINDOW_PARTS };

static void window_batch_fill(sb_batch *batch, int64_t L, const int32_t *const ids[],
                              const int64_t length[])
{
    int32_t *in = sb_tensor_data(batch->part[WINDOW_IN].t),
            *out = sb_tensor_data(batch->part[WINDOW_OUT].t),
            *lengths = sb_tensor_data(batch->part[WINDOW_LENGTHS].t);
    for (int64_t b = 0; b < batch->items; b++) {
        for (int64_t i = 0; i < L; i++) {
            const bool inside = i < length[b];
            in[b * L + i] = inside ? ids[b][i] : SB_SYMBOL_PADDING;
            out[b * L + i] = inside ? ids[b][i + 1] : -1;
        }
        lengths[b] = (int32_t)length[b];
        batch->targets += length[b];
    }
}

static sb_tensor *window_batch_ids(int rank, const int64_t *dim)
{
    return tensor_new("window_batch", sb_device_cpu(), SB_I32, rank, dim);
}

static bool window_batch_longest(int64_t n, const int32_t *const ids[], const int64_t length[],
                                 int64_t *longest)
{
    *longest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!ids[i] || length[i] < 1)
            return sb_fail("window_batch: window %lld has %lld symbols to predict, expected at "
                           "least 1",
                           (long long)i, (long long)(ids[i] ? length[i] : 0));
        *longest = length[i] > *longest ? length[i] : *longest;
    }
    return true;
}

sb_batch *sb_window_batch_new(int64_t n, const int32_t *const ids[], const int64_t length[])
{
    int64_t L;
    if (!ids || !length)
        return fail_null("window_batch", ids ? "length" : "ids");
    if (n < 1)
        return sb_fail("window_batch: %lld windows make no batch", (long long)n);
    if (!window_batch_longest(n, ids, length, &L))
        return NULL;
    L = batch_padded(L);
    sb_batch *batch = memory_new(sizeof *batch);
    if (!batch)
        return sb_fail("window_batch: out of memory");
    *batch = (sb_batch){
        .items = n,
        .parts = WINDOW_PARTS,
        .target_lengths = "target_lengths",
        .part = {
            [WINDOW_IN] = {"target_in", window_batch_ids(SB_SHAPE(n, L)), SB_SEQUENCE_TARGET},
            [WINDOW_OUT] = {"target_out", window_batch_ids(SB_SHAPE(n, L)), SB_SEQUENCE_TARGET},
            [WINDOW_LENGTHS] = {"target_lengths", window_batch_ids(SB_SHAPE(n)),
                                SB_SEQUENCE_NONE}}};
    if (batch_is_whole(batch)) {
        window_batch_fill(batch, L, ids, length);
        batch_move(batch, sb_device_in_use());
    }
    if (batch_is_whole(batch))
        return batch;
    sb_batch_free(batch);
    return NULL;
}
