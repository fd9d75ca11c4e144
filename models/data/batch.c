#include "models/data/batch.h"
#include "models/data/batch_parts.h"
#include "models/text/vocabulary.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <string.h>

sb_tensor *sb_batch_get(const sb_batch *batch, const char *name)
{
    if (!batch || !name)
        return fail_null("batch_get", batch ? "name" : "batch");
    if (batch->parts < 0 || batch->parts > SB_BATCH_PARTS)
        return sb_fail("batch: %d parts is not in 0..%d", batch->parts, SB_BATCH_PARTS);
    for (int i = 0; i < batch->parts; i++)
        if (batch->part[i].name && strcmp(batch->part[i].name, name) == 0)
            return batch->part[i].t;
    return sb_fail("batch: it has no part \"%s\"", name);
}

bool batch_is_whole(const sb_batch *batch)
{
    for (int i = 0; i < batch->parts; i++)
        if (!batch->part[i].t)
            return false;
    return true;
}

static bool batch_part_check(const sb_batch *batch, const sb_batch_part *part, bool cut)
{
    if (!part->name || !part->t)
        return fail_null("batch", part->name ? part->name : "the name of a part");
    if (part->t->rank < 1 || part->t->dim[0] != batch->items)
        return sb_fail("batch: \"%s\" is %s; axis 0 must have a row for each of %lld items",
                       part->name, tensor_shape(part->t).text, (long long)batch->items);
    return !cut || part->along == SB_SEQUENCE_NONE || part->t->rank > 1 ||
           sb_fail("batch: \"%s\" is %s and has no positions; `along` must be "
                   "SB_SEQUENCE_NONE",
                   part->name, tensor_shape(part->t).text);
}

static bool batch_check_lengths(const sb_batch *batch, const char *name)
{
    const sb_tensor *t = name ? sb_batch_get(batch, name) : NULL;
    if (!name || (t && t->dtype == SB_I32 && t->rank == 1))
        return true;
    return t && sb_fail("batch: \"%s\" is %s of %s; lengths must be (%lld) of i32", name,
                        tensor_shape(t).text, sb_dtype_name(t->dtype), (long long)batch->items);
}

bool batch_check(const sb_batch *batch, bool cut)
{
    if (batch->items < 1 || batch->targets < 1)
        return sb_fail("batch: it has %lld items and %lld targets; both must be at least 1",
                       (long long)batch->items, (long long)batch->targets);
    if (batch->parts < 1 || batch->parts > SB_BATCH_PARTS)
        return sb_fail("batch: it has %d parts; it must have 1..%d", batch->parts, SB_BATCH_PARTS);
    for (int i = 0; i < batch->parts; i++)
        if (!batch_part_check(batch, &batch->part[i], cut))
            return false;
    return batch_check_lengths(batch, batch->source_lengths) &&
           batch_check_lengths(batch, batch->target_lengths);
}

void batch_release(sb_batch *batch)
{
    for (int i = 0; i < batch->parts; i++)
        sb_tensor_release(batch->part[i].t);
    *batch = (sb_batch){0};
}

void sb_batch_free(sb_batch *batch)
{
    if (!batch)
        return;
    batch_release(batch);
    memory_free(batch);
}

/* ---- sentence pairs ---- */

enum { SOURCE_IDS, SOURCE_LENGTHS, TARGET_IN, TARGET_OUT, TARGET_LENGTHS, PAIR_PARTS };

static int64_t batch_longest(int64_t n, const sb_encoded_pair pairs[], bool source)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = source ? pairs[i].source_length : pairs[i].target_length;
        most = length > most ? length : most;
    }
    return most;
}

int64_t batch_padded(int64_t length)
{
    const int64_t whole = sb_device_in_use()->graphs ? 8 : 1;
    return length > 0 ? (length + whole - 1) / whole * whole : whole;
}

static void batch_fill(sb_batch *batch, const sb_encoded_pair pairs[])
{
    int32_t *data[PAIR_PARTS];
    for (int i = 0; i < PAIR_PARTS; i++)
        data[i] = sb_tensor_data(batch->part[i].t);
    int64_t Ls = sb_tensor_dim(batch->part[SOURCE_IDS].t, 1);
    int64_t Lt = sb_tensor_dim(batch->part[TARGET_IN].t, 1);
    for (int64_t b = 0; b < batch->items; b++) {
        const sb_encoded_pair *p = &pairs[b];
        const sb_vocabulary *v = p->vocabulary;
        const int32_t first = v ? sb_vocabulary_special(v, SB_SYMBOL_BEGIN) : SB_SYMBOL_BEGIN,
                      last = v ? sb_vocabulary_special(v, SB_SYMBOL_END) : SB_SYMBOL_END;
        for (int64_t i = 0; i < Ls; i++)
            data[SOURCE_IDS][b * Ls + i] = i < p->source_length ? p->source[i] : SB_SYMBOL_PADDING;
        for (int64_t i = 0; i < Lt; i++) {
            bool inside = i < p->target_length, end = i == p->target_length;
            data[TARGET_IN][b * Lt + i] = i == 0          ? first
                                          : inside || end ? p->target[i - 1]
                                                          : SB_SYMBOL_PADDING;
            data[TARGET_OUT][b * Lt + i] = inside ? p->target[i] : end ? last : -1;
        }
        data[SOURCE_LENGTHS][b] = (int32_t)(p->source_length > 0 ? p->source_length : 1);
        data[TARGET_LENGTHS][b] = (int32_t)(p->target_length + 1);
        batch->targets += p->target_length + 1;
    }
}

static sb_tensor *batch_host_ids(int rank, const int64_t *dim)
{
    return tensor_new("batch", sb_device_cpu(), SB_I32, rank, dim);
}

void batch_move(sb_batch *batch, const sb_device *device)
{
    for (int i = 0; i < batch->parts; i++)
        batch->part[i].t = tensor_moved(batch->part[i].t, device);
}

bool batch_copy(sb_batch *to, const sb_batch *from, const sb_device *device)
{
    *to = *from;
    for (int i = 0; i < to->parts; i++)
        to->part[i].t = sb_tensor_to(from->part[i].t, device);
    return batch_is_whole(to);
}

sb_batch *sb_batch_new(int64_t n, const sb_encoded_pair pairs[])
{
    if (!pairs)
        return fail_null("batch", "pairs");
    if (!check_at_least("batch", "n", n, 1))
        return NULL;
    int64_t Ls = batch_padded(batch_longest(n, pairs, true)),
            Lt = batch_padded(batch_longest(n, pairs, false) + 1);
    sb_batch *batch = memory_new(sizeof *batch);
    if (!batch)
        return sb_fail("batch: out of memory");
    *batch = (sb_batch){
        .items = n,
        .parts = PAIR_PARTS,
        .source_lengths = "source_lengths",
        .target_lengths = "target_lengths",
        .part = {
            [SOURCE_IDS] = {"source", batch_host_ids(SB_SHAPE(n, Ls)), SB_SEQUENCE_SOURCE},
            [SOURCE_LENGTHS] = {"source_lengths", batch_host_ids(SB_SHAPE(n)), SB_SEQUENCE_NONE},
            [TARGET_IN] = {"target_in", batch_host_ids(SB_SHAPE(n, Lt)), SB_SEQUENCE_TARGET},
            [TARGET_OUT] = {"target_out", batch_host_ids(SB_SHAPE(n, Lt)), SB_SEQUENCE_TARGET},
            [TARGET_LENGTHS] = {"target_lengths", batch_host_ids(SB_SHAPE(n)), SB_SEQUENCE_NONE}}};
    if (batch_is_whole(batch)) {
        batch_fill(batch, pairs);
        batch_move(batch, sb_device_in_use());
    }
    if (batch_is_whole(batch))
        return batch;
    sb_batch_free(batch);
    return NULL;
}
