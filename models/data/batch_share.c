#include "models/data/batch_parts.h"
#include "nn/groups.h"
#include "ops/runs.h"
#include "ops/shape.h"
#include "tensor/ranks.h"
#include "tensor/storage.h"
#include <string.h>

/* Rows of a tensor, without a copy. */
static sb_tensor *share_rows(sb_tensor *t, int64_t first, int64_t count)
{
    int64_t dim[SB_MAX_RANK] = {count};
    for (int i = 1; i < t->rank; i++)
        dim[i] = t->dim[i];
    return tensor_view("batch", t, first * (tensor_size(t) / t->dim[0]), t->rank, dim);
}

void batch_share_release(struct batch_share *share)
{
    batch_release(&share->batch);
    *share = (struct batch_share){0};
}

bool batch_share_take(struct batch_share *share, const sb_batch *batch, int rank, int ranks)
{
    const int64_t first = share_begin(batch->items, rank, ranks);
    const int64_t count = share_begin(batch->items, rank + 1, ranks) - first;
    const sb_piece whole = {.of = batch->items}; /* in which the batch may be a share itself */
    sb_batch *own = &share->batch;
    *share = (struct batch_share){.place = batch->partition ? *batch->partition
                                                            : (sb_partition){.items = whole},
                                  .batch = {.items = count,
                                            .targets = batch->targets,
                                            .source_lengths = batch->source_lengths,
                                            .target_lengths = batch->target_lengths}};
    share->place.items.first += first;
    own->partition = &share->place;
    if (count == 0)
        return true;
    for (own->parts = 0; own->parts < batch->parts; own->parts++) {
        const sb_batch_part *part = &batch->part[own->parts];
        own->part[own->parts] =
            (sb_batch_part){part->name, share_rows(part->t, first, count), part->along};
    }
    if (batch_is_whole(own))
        return true;
    batch_share_release(share);
    return false;
}

int batch_shares(const sb_batch *batch, const sb_parameters *weights)
{
    enum { ROWS = 512, MOST = 8, MOST_BYTES = 1 << 25 };
    int64_t rows = batch->items;
    for (int i = 0; i < batch->parts; i++) {
        const sb_batch_part *part = &batch->part[i];
        if (part->along != SB_SEQUENCE_NONE && part->t->dim[0] * part->t->dim[1] > rows)
            rows = part->t->dim[0] * part->t->dim[1];
    }
    int shares = 1; /* a power of two, which two and four threads divide */
    while (shares < MOST && 2 * shares * ROWS <= rows)
        shares *= 2;
    const int64_t bytes =
        sb_parameters_trainable(weights) * (int64_t)sb_dtype_bytes(sb_parameters_dtype(weights));
    return bytes <= MOST_BYTES ? shares : 1;
}

/* Copies the two runs of positions that a rank holds of a sequence: axis 1 of both tensors. */
static bool share_copy_runs(sb_tensor *to, const sb_tensor *from, const struct run run[2])
{
    const struct slice_kernels *kernels = kernel_row(&slice_rows, to);
    const size_t width = sb_dtype_bytes(to->dtype);
    int64_t position = 1; /* elements */
    for (int i = 2; i < to->rank; i++)
        position *= to->dim[i];
    bool ok = kernels != NULL;
    for (int i = 0; ok && i < 2; i++) {
        const struct runs runs = {to->dim[0], run[i].count * position, from->dim[1] * position,
                                  to->dim[1] * position};
        const char *x = (const char *)from->data + (size_t)(run[i].first * position) * width;
        char *y = (char *)to->data + (size_t)(run[i].here * position) * width;
        ok = runs.length == 0 || kernels->copy(width, runs, x, y);
    }
    return ok;
}

/* Reduces a part (B, L, ...) to `here` of its positions. */
static void share_keep(sb_batch_part *part, const sb_piece *piece, int64_t here)
{
    sb_tensor *whole = part->t;
    int64_t dim[SB_MAX_RANK];
    struct run run[2];
    memcpy(dim, whole->dim, sizeof dim);
    dim[1] = here;
    piece_runs(piece, here, run);
    part->t = tensor_new("batch", whole->device, whole->dtype, whole->rank, dim);
    if (part->t && !share_copy_runs(part->t, whole, run)) {
        sb_tensor_release(part->t);
        part->t = NULL;
    }
    sb_tensor_release(whole);
}

static sb_piece *share_place(struct batch_share *share, sb_sequence along)
{
    return along == SB_SEQUENCE_SOURCE ? &share->place.source : &share->place.target;
}

bool batch_share_cut(struct batch_share *share, int rank, int ranks)
{
    sb_batch *own = &share->batch;
    for (int i = 0; i < own->parts; i++) {
        sb_batch_part *part = &own->part[i];
        int64_t here;
        if (part->along == SB_SEQUENCE_NONE)
            continue;
        sb_piece *piece = share_place(share, part->along);
        *piece = sb_piece_zigzag(part->t->dim[1], ranks, rank, &here);
        share_keep(part, piece, here);
    }
    return batch_is_whole(own);
}

/* Leaves out the positions of a sequence that are past the end of all items. */
static bool share_trim(struct batch_share *share, sb_sequence along, const char *name)
{
    sb_batch *own = &share->batch;
    const sb_tensor *lengths = name ? sb_batch_get(own, name) : NULL;
    if (!lengths || lengths->device != sb_device_cpu())
        return !name || lengths;
    int64_t longest = 1;
    for (int64_t i = 0; i < own->items; i++) {
        const int64_t length = ((const int32_t *)lengths->data)[i];
        longest = length > longest ? length : longest;
    }
    for (int i = 0; i < own->parts; i++) {
        sb_batch_part *part = &own->part[i];
        if (part->along != along || longest >= part->t->dim[1])
            continue;
        sb_piece *piece = share_place(share, along);
        piece->of = piece->of ? piece->of : part->t->dim[1];
        share_keep(part, piece, longest);
    }
    return batch_is_whole(own);
}

bool batch_share_trim(struct batch_share *share)
{
    const sb_batch *own = &share->batch;
    return own->items == 0 || (share_trim(share, SB_SEQUENCE_SOURCE, own->source_lengths) &&
                               share_trim(share, SB_SEQUENCE_TARGET, own->target_lengths));
}
