#include "models/data/batch_share.h"
#include "ops/runs.h"
#include "tensor/storage.h"
#include <string.h>

/* Rows of a tensor, without a copy. */
static sb_tensor *rows(sb_tensor *t, int64_t first, int64_t count)
{
    int64_t dim[SB_MAX_RANK] = {count};
    for (int i = 1; i < t->rank; i++)
        dim[i] = t->dim[i];
    return tensor_view("batch", t, first * (tensor_size(t) / t->dim[0]), t->rank, dim);
}

void batch_share_release(struct batch_share *share)
{
    sb_tensor_release(share->batch.source);
    sb_tensor_release(share->batch.source_lengths);
    sb_tensor_release(share->batch.target_in);
    sb_tensor_release(share->batch.target_out);
    sb_tensor_release(share->batch.target_lengths);
    *share = (struct batch_share){0};
}

bool batch_share_take(struct batch_share *share, const sb_batch *batch, int rank, int ranks)
{
    const int64_t first = batch->pairs * rank / ranks;
    const int64_t count = batch->pairs * (rank + 1) / ranks - first;
    sb_batch *own = &share->batch;
    *share = (struct batch_share){.place = {.items = {.of = batch->pairs, .first = first}},
                                  .batch = {.pairs = count, .targets = batch->targets}};
    if (count == 0)
        return true;
    own->source = rows(batch->source, first, count);
    own->source_lengths = rows(batch->source_lengths, first, count);
    own->target_in = rows(batch->target_in, first, count);
    own->target_out = rows(batch->target_out, first, count);
    own->target_lengths = rows(batch->target_lengths, first, count);
    if (own->source && own->source_lengths && own->target_in && own->target_out &&
        own->target_lengths)
        return true;
    batch_share_release(share);
    return false;
}

/* What a piece leaves of the columns of ids (B, L), which are released. */
static sb_tensor *columns(sb_tensor *ids, const sb_piece *piece, int64_t here)
{
    const int64_t B = ids->dim[0], L = ids->dim[1];
    sb_tensor *part = tensor_new("batch", ids->device, ids->dtype, SB_SHAPE(B, here));
    struct run run[2];
    piece_runs(piece, here, run);
    for (int64_t b = 0; part && b < B; b++)
        for (int i = 0; i < 2; i++)
            memcpy((int32_t *)part->data + b * here + run[i].here,
                   (const int32_t *)ids->data + b * L + run[i].first,
                   (size_t)run[i].count * sizeof(int32_t));
    sb_tensor_release(ids);
    return part;
}

bool batch_share_cut(struct batch_share *share, int rank, int ranks)
{
    sb_batch *own = &share->batch;
    int64_t source, target;
    if (own->pairs == 0)
        return true;
    share->place.source = sb_piece_zigzag(own->source->dim[1], ranks, rank, &source);
    share->place.target = sb_piece_zigzag(own->target_in->dim[1], ranks, rank, &target);
    own->source = columns(own->source, &share->place.source, source);
    own->target_in = columns(own->target_in, &share->place.target, target);
    own->target_out = columns(own->target_out, &share->place.target, target);
    return own->source && own->target_in && own->target_out;
}
