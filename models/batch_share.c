#include "models/batch_share.h"
#include "tensor/storage.h"

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
    *share = (struct batch_share){
        .first = first, .all = batch->pairs, .batch = {.pairs = count, .targets = batch->targets}};
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
