/* Batches of labelled texts. */
#include "models/data/batch_parts.h"
#include "models/data/labelled.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

enum { LABELLED_TEXT, LABELLED_LENGTHS, LABELLED_POOLING, LABELLED_LABEL, LABELLED_PARTS };

static void labelled_batch_fill(sb_batch *batch, int64_t L, const int32_t *const ids[],
                                const int64_t length[], const int64_t label[], int64_t begin)
{
    int32_t *text = sb_tensor_data(batch->part[LABELLED_TEXT].t),
            *lengths = sb_tensor_data(batch->part[LABELLED_LENGTHS].t),
            *labels = sb_tensor_data(batch->part[LABELLED_LABEL].t);
    float *pooling = sb_tensor_data(batch->part[LABELLED_POOLING].t);
    for (int64_t b = 0; b < batch->items; b++) {
        const int64_t n = length[b] + begin;
        for (int64_t i = 0; i < L; i++) {
            text[b * L + i] = i < begin ? SB_SYMBOL_BEGIN
                              : i < n   ? ids[b][i - begin]
                                        : SB_SYMBOL_PADDING;
            pooling[b * L + i] = i < n ? 1 / (float)n : 0;
        }
        lengths[b] = (int32_t)n;
        labels[b] = label ? (int32_t)label[b] : -1;
    }
}

static sb_batch_part labelled_part(const char *name, sb_dtype dtype, int rank, const int64_t *dim,
                                   sb_sequence along)
{
    return (sb_batch_part){name, tensor_new("labelled_batch", sb_device_cpu(), dtype, rank, dim),
                           along};
}

sb_batch *sb_labelled_batch_new(int64_t n, const int32_t *const ids[], const int64_t length[],
                                const int64_t label[], const sb_vocabulary *vocabulary)
{
    const int64_t begin = sb_vocabulary_units(vocabulary) != SB_UNITS_IDS;
    if (!ids || !length)
        return fail_null("labelled_batch", ids ? "length" : "ids");
    if (n < 1)
        return sb_fail("labelled_batch: %lld texts make no batch", (long long)n);
    int64_t L = 1;
    for (int64_t i = 0; i < n; i++) {
        if (length[i] < 1 - begin || (!ids[i] && length[i] > 0))
            return sb_fail("labelled_batch: text %lld has %lld symbols, expected at least %lld and "
                           "their ids",
                           (long long)i, (long long)length[i], (long long)(1 - begin));
        L = length[i] + begin > L ? length[i] + begin : L;
    }
    L = batch_padded(L);
    sb_batch *batch = memory_new(sizeof *batch);
    if (!batch)
        return sb_fail("labelled_batch: out of memory");
    *batch =
        (sb_batch){.items = n, .targets = n, .parts = LABELLED_PARTS, .source_lengths = "lengths"};
    batch->part[LABELLED_TEXT] = labelled_part("text", SB_I32, SB_SHAPE(n, L), SB_SEQUENCE_SOURCE);
    batch->part[LABELLED_LENGTHS] = labelled_part("lengths", SB_I32, SB_SHAPE(n), SB_SEQUENCE_NONE);
    batch->part[LABELLED_POOLING] =
        labelled_part("pooling", SB_F32, SB_SHAPE(n, L), SB_SEQUENCE_SOURCE);
    batch->part[LABELLED_LABEL] = labelled_part("label", SB_I32, SB_SHAPE(n), SB_SEQUENCE_NONE);
    if (batch_is_whole(batch)) {
        labelled_batch_fill(batch, L, ids, length, label, begin);
        batch_move(batch, sb_device_in_use());
    }
    if (batch_is_whole(batch))
        return batch;
    sb_batch_free(batch);
    return NULL;
}
