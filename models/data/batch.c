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

/* ---- batches of sequences ---- */

static sb_batch *batch_if_whole(sb_batch *batch)
{
    if (batch_is_whole(batch))
        return batch;
    sb_batch_free(batch);
    return NULL;
}

/* A multiple of 8 on a device with graphs, which records one graph for each shape. */
static int64_t batch_padded(int64_t length)
{
    const int64_t whole = sb_device_in_use()->graphs ? 8 : 1;
    return length > 0 ? (length + whole - 1) / whole * whole : whole;
}

sb_batch *batch_begin(const char *owner, int64_t n, const struct batch_form form[],
                      int64_t source_length, int64_t target_length)
{
    sb_batch *batch = memory_new(sizeof *batch);
    if (!batch)
        return sb_fail("%s: out of memory", owner);
    batch->items = n;
    for (const struct batch_form *f = form; f->name; f++) {
        const int rank = f->along == SB_SEQUENCE_NONE ? 1 : 2;
        const int64_t length = f->along == SB_SEQUENCE_SOURCE ? source_length : target_length;
        const int64_t dim[] = {n, batch_padded(length)};
        sb_tensor *t = tensor_new(owner, sb_device_cpu(), f->dtype, rank, dim);
        batch->part[batch->parts++] = (sb_batch_part){f->name, t, f->along};
    }
    return batch_if_whole(batch);
}

void *batch_row(const sb_batch *batch, int part, int64_t item)
{
    const sb_tensor *t = batch->part[part].t;
    return (char *)t->data + (size_t)item * tensor_bytes(t) / (size_t)batch->items;
}

void batch_write(const sb_batch *batch, int part, int64_t item, int64_t first, const int32_t *ids,
                 int64_t n, int32_t padding)
{
    int32_t *row = batch_row(batch, part, item);
    for (int64_t i = first; i < batch->part[part].t->dim[1]; i++)
        row[i] = i - first < n ? ids[i - first] : padding;
}

sb_batch *batch_end(sb_batch *batch)
{
    for (int i = 0; i < batch->parts; i++)
        batch->part[i].t = tensor_moved(batch->part[i].t, sb_device_in_use());
    return batch_if_whole(batch);
}

/* ---- sentence pairs ---- */

enum { SOURCE_IDS, SOURCE_LENGTHS, TARGET_IN, TARGET_OUT, TARGET_LENGTHS };

int64_t batch_longest(int64_t n, const sb_encoded_pair pairs[], bool source)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = source ? pairs[i].source_length : pairs[i].target_length;
        most = length > most ? length : most;
    }
    return most;
}

static void batch_fill(sb_batch *batch, const sb_encoded_pair pairs[])
{
    for (int64_t b = 0; b < batch->items; b++) {
        const sb_encoded_pair *p = &pairs[b];
        const sb_vocabulary *v = p->vocabulary;
        const int32_t first = v ? sb_vocabulary_special(v, SB_SYMBOL_BEGIN) : SB_SYMBOL_BEGIN,
                      last = v ? sb_vocabulary_special(v, SB_SYMBOL_END) : SB_SYMBOL_END;
        const int64_t n = p->source_length, m = p->target_length;
        batch_write(batch, SOURCE_IDS, b, 0, p->source, n, SB_SYMBOL_PADDING);
        batch_write(batch, TARGET_IN, b, 1, p->target, m, SB_SYMBOL_PADDING);
        batch_write(batch, TARGET_OUT, b, 0, p->target, m, -1);
        *(int32_t *)batch_row(batch, TARGET_IN, b) = first;
        ((int32_t *)batch_row(batch, TARGET_OUT, b))[m] = last;
        *(int32_t *)batch_row(batch, SOURCE_LENGTHS, b) = (int32_t)(n > 0 ? n : 1);
        *(int32_t *)batch_row(batch, TARGET_LENGTHS, b) = (int32_t)(m + 1);
        batch->targets += m + 1;
    }
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
    static const struct batch_form form[] = {
        [SOURCE_IDS] = {"source", SB_I32, SB_SEQUENCE_SOURCE},
        [SOURCE_LENGTHS] = {"source_lengths", SB_I32, SB_SEQUENCE_NONE},
        [TARGET_IN] = {"target_in", SB_I32, SB_SEQUENCE_TARGET},
        [TARGET_OUT] = {"target_out", SB_I32, SB_SEQUENCE_TARGET},
        [TARGET_LENGTHS] = {"target_lengths", SB_I32, SB_SEQUENCE_NONE},
        {0}};
    sb_batch *batch = batch_begin("batch", n, form, batch_longest(n, pairs, true),
                                  batch_longest(n, pairs, false) + 1);
    if (!batch)
        return NULL;
    batch->source_lengths = "source_lengths";
    batch->target_lengths = "target_lengths";
    batch_fill(batch, pairs);
    return batch_end(batch);
}
