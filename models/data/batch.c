#include "models/data/batch.h"
#include "models/text/vocabulary.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

static int64_t longest(int64_t n, const sb_encoded_pair pairs[], bool source)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = source ? pairs[i].source_length : pairs[i].target_length;
        most = length > most ? length : most;
    }
    return most;
}

/* What a length is padded to. Where a device launches steps of one shape at once, there are to be
   fewer shapes. */
static int64_t padded(int64_t length)
{
    const int64_t whole = sb_device_in_use()->graphs ? 8 : 1;
    return length > 0 ? (length + whole - 1) / whole * whole : whole;
}

static void fill(sb_batch *batch, const sb_encoded_pair pairs[])
{
    int64_t Ls = batch->source ? sb_tensor_dim(batch->source, 1) : 0;
    int64_t Lt = sb_tensor_dim(batch->target_in, 1);
    int32_t *source = sb_tensor_data(batch->source), *in = sb_tensor_data(batch->target_in);
    int32_t *out = sb_tensor_data(batch->target_out);
    int32_t *source_length = sb_tensor_data(batch->source_lengths);
    int32_t *target_length = sb_tensor_data(batch->target_lengths);
    for (int64_t b = 0; b < batch->pairs; b++) {
        const sb_encoded_pair *p = &pairs[b];
        for (int64_t i = 0; i < Ls; i++)
            source[b * Ls + i] = i < p->source_length ? p->source[i] : SB_PADDING;
        for (int64_t i = 0; i < Lt; i++) {
            bool inside = i < p->target_length, end = i == p->target_length;
            in[b * Lt + i] = i == 0 ? SB_BEGIN : inside || end ? p->target[i - 1] : SB_PADDING;
            out[b * Lt + i] = inside ? p->target[i] : end ? SB_END : -1;
        }
        source_length[b] = (int32_t)(p->source_length > 0 ? p->source_length : 1);
        target_length[b] = (int32_t)(p->target_length + 1);
        batch->targets += p->target_length + 1;
    }
}

static sb_tensor *host_ids(int rank, const int64_t *dim)
{
    return tensor_new("batch", sb_device_cpu(), SB_I32, rank, dim);
}

static bool whole(const sb_batch *batch)
{
    return batch->source && batch->target_in && batch->target_out && batch->source_lengths &&
           batch->target_lengths;
}

static void move(sb_batch *batch, const sb_device *device)
{
    sb_tensor **part[] = {&batch->source, &batch->source_lengths, &batch->target_in,
                          &batch->target_out, &batch->target_lengths};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        *part[i] = tensor_moved(*part[i], device);
}

sb_batch *sb_batch_new(int64_t n, const sb_encoded_pair pairs[])
{
    if (n < 1 || !pairs)
        return pairs ? sb_fail("batch: %lld pairs make no batch", (long long)n)
                     : fail_null("batch", "pairs");
    int64_t Ls = padded(longest(n, pairs, true)), Lt = padded(longest(n, pairs, false) + 1);
    sb_batch *batch = memory_new(sizeof *batch);
    if (!batch)
        return sb_fail("batch: out of memory");
    batch->pairs = n;
    batch->source = host_ids(SB_SHAPE(n, Ls));
    batch->target_in = host_ids(SB_SHAPE(n, Lt));
    batch->target_out = host_ids(SB_SHAPE(n, Lt));
    batch->source_lengths = host_ids(SB_SHAPE(n));
    batch->target_lengths = host_ids(SB_SHAPE(n));
    if (whole(batch)) {
        fill(batch, pairs);
        move(batch, sb_device_in_use());
    }
    if (whole(batch))
        return batch;
    sb_batch_free(batch);
    return NULL;
}

void sb_batch_free(sb_batch *batch)
{
    if (!batch)
        return;
    sb_tensor_release(batch->source);
    sb_tensor_release(batch->source_lengths);
    sb_tensor_release(batch->target_in);
    sb_tensor_release(batch->target_out);
    sb_tensor_release(batch->target_lengths);
    memory_free(batch);
}
