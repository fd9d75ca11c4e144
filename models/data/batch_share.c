#include "models/data/batch_share.h"
#include "models/data/batch_parts.h"
#include "nn/groups.h"
#include "ops/runs.h"
#include "ops/slice.h"
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
                                  .batch = {.items = count, .targets = batch->targets}};
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

/* The piece of a part (B, L, ...) that a rank holds, and its position; releases the part. */
static sb_tensor *share_piece_of(sb_tensor *whole, int rank, int ranks, sb_piece *piece)
{
    int64_t dim[SB_MAX_RANK];
    struct run run[2];
    memcpy(dim, whole->dim, sizeof dim);
    *piece = sb_piece_zigzag(whole->dim[1], ranks, rank, &dim[1]);
    piece_runs(piece, dim[1], run);
    sb_tensor *part = tensor_new("batch", whole->device, whole->dtype, whole->rank, dim);
    const bool ok = part && share_copy_runs(part, whole, run);
    sb_tensor_release(whole);
    if (ok)
        return part;
    sb_tensor_release(part);
    return NULL;
}

bool batch_share_cut(struct batch_share *share, int rank, int ranks)
{
    sb_batch *own = &share->batch;
    for (int i = 0; i < own->parts; i++) {
        sb_batch_part *part = &own->part[i];
        sb_piece *piece =
            part->along == SB_SEQUENCE_SOURCE ? &share->place.source : &share->place.target;
        if (part->along != SB_SEQUENCE_NONE)
            part->t = share_piece_of(part->t, rank, ranks, piece);
    }
    return batch_is_whole(own);
}
