#include "models/data/labelled.h"
#include "models/data/epoch.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

struct sb_labelled {
    sb_data_options options;
    sb_vocabulary *vocabulary;
    int64_t count, left_out;
    sb_encoded_pair *text; /* as sources; what epochs are planned of */
    int64_t *label;
    sb_batch *batch;
    sb_data_position next;
    struct epoch epoch;
    int64_t planned; /* the epoch that is planned; -1: none */
};

void sb_labelled_free(sb_labelled *d)
{
    if (!d)
        return;
    for (int64_t i = 0; i < d->count; i++)
        sb_free((void *)(uintptr_t)d->text[i].source);
    memory_free(d->text);
    memory_free(d->label);
    epoch_free(&d->epoch);
    sb_batch_free(d->batch);
    sb_vocabulary_release(d->vocabulary);
    memory_free(d);
}

static bool labelled_encode(sb_labelled *d, const sb_pairs *pairs, int64_t i,
                            const sb_labels *labels)
{
    const int64_t label = sb_labels_find(labels, sb_pairs_target(pairs, i));
    int64_t n;
    if (label < 0)
        return sb_fail("labelled: text %lld has the label \"%s\", which is none of %lld labels",
                       (long long)i, sb_pairs_target(pairs, i), (long long)sb_labels_count(labels));
    int32_t *ids = sb_vocabulary_encode(d->vocabulary, sb_pairs_source(pairs, i), &n, NULL);
    if (!ids)
        return false;
    if (n > d->options.longest) {
        sb_free(ids);
        d->left_out++;
        return true;
    }
    d->label[d->count] = label;
    d->text[d->count++] = (sb_encoded_pair){.source = ids, .source_length = n};
    return true;
}

static bool labelled_encode_all(sb_labelled *d, const sb_pairs *pairs, const sb_labels *labels)
{
    const int64_t n = sb_pairs_count(pairs);
    d->text = memory_new((size_t)(n + 1) * sizeof *d->text);
    d->label = memory_new((size_t)(n + 1) * sizeof *d->label);
    if (!d->text || !d->label)
        return sb_fail("labelled: out of memory for %lld texts", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!labelled_encode(d, pairs, i, labels))
            return false;
    return d->count > 0 || sb_fail("labelled: none of %lld texts has at most %lld symbols",
                                   (long long)n, (long long)d->options.longest);
}

sb_labelled *sb_labelled_new(const sb_pairs *pairs, sb_vocabulary *vocabulary,
                             const sb_labels *labels, const sb_data_options *options)
{
    if (!pairs || !vocabulary || !labels)
        return fail_null("labelled", !pairs ? "pairs" : vocabulary ? "labels" : "vocabulary");
    sb_data_options o = options ? *options : (sb_data_options){0};
    if (o.batch_pairs < 0 || o.batch_symbols < 0 || o.longest < 0)
        return sb_fail("labelled: batch_pairs %lld, batch_symbols %lld or longest %lld is negative",
                       (long long)o.batch_pairs, (long long)o.batch_symbols, (long long)o.longest);
    o.batch_pairs = o.batch_pairs ? o.batch_pairs : 64;
    o.batch_symbols = o.batch_symbols ? o.batch_symbols : 4096;
    o.longest = o.longest ? o.longest : 512;
    sb_labelled *d = memory_new(sizeof *d);
    if (!d)
        return sb_fail("labelled: out of memory");
    *d = (sb_labelled){.options = o, .planned = -1};
    d->vocabulary = sb_vocabulary_retain(vocabulary);
    if (labelled_encode_all(d, pairs, labels))
        return d;
    sb_labelled_free(d);
    return NULL;
}

int64_t sb_labelled_count(const sb_labelled *d)
{
    return d ? d->count : 0;
}

int64_t sb_labelled_left_out(const sb_labelled *d)
{
    return d ? d->left_out : 0;
}

static bool labelled_plan(sb_labelled *d)
{
    const struct epoch_limits limits = {d->options.batch_pairs, d->options.batch_symbols};
    struct epoch epoch;
    if (d->planned == d->next.epoch)
        return true;
    if (!epoch_plan(&epoch, d->count, d->text, limits, d->options.seed, d->next.epoch))
        return false;
    epoch_free(&d->epoch);
    d->epoch = epoch;
    d->planned = d->next.epoch;
    return true;
}

static sb_batch *labelled_pick(const sb_labelled *d)
{
    const int64_t b = d->epoch.batch[d->next.batch], begin = d->epoch.begin[b],
                  n = d->epoch.begin[b + 1] - begin;
    const int32_t **ids = memory_new((size_t)n * sizeof *ids);
    int64_t *numbers = memory_new((size_t)(2 * n) * sizeof *numbers);
    for (int64_t i = 0; ids && numbers && i < n; i++) {
        const int64_t text = d->epoch.order[begin + i];
        ids[i] = d->text[text].source;
        numbers[i] = d->text[text].source_length;
        numbers[n + i] = d->label[text];
    }
    sb_batch *batch = ids && numbers ? sb_labelled_batch_new(n, ids, numbers, numbers + n)
                                     : sb_fail("labelled: out of memory for a batch");
    memory_free(ids);
    memory_free(numbers);
    return batch;
}

const sb_batch *sb_labelled_next(sb_labelled *d)
{
    if (!d)
        return fail_null("labelled_next", "labelled");
    sb_batch *batch = labelled_plan(d) ? labelled_pick(d) : NULL;
    if (!batch)
        return NULL;
    sb_batch_free(d->batch);
    d->batch = batch;
    d->next.batch++;
    if (d->next.batch == d->epoch.batches)
        d->next = (sb_data_position){d->next.epoch + 1, 0};
    return batch;
}

sb_data_position sb_labelled_tell(const sb_labelled *d)
{
    return d ? d->next : (sb_data_position){0};
}

bool sb_labelled_seek(sb_labelled *d, sb_data_position position)
{
    if (!d)
        return fail_null("labelled_seek", "labelled");
    const int64_t most = (int64_t)1 << 19;
    const sb_data_position before = d->next;
    bool ok = position.batch >= 0 && position.epoch >= 0 && position.epoch < most;
    if (ok) {
        d->next = position;
        if (!labelled_plan(d)) {
            d->next = before;
            return false;
        }
        ok = position.batch < d->epoch.batches;
    }
    d->next = ok ? position : before;
    return ok || sb_fail("labelled_seek: there is no batch %lld in epoch %lld",
                         (long long)position.batch, (long long)position.epoch);
}

/* ---- as a source ---- */

/* FNV-1a. */
static uint64_t labelled_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (const unsigned char *at = bytes; count > 0; count--, at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

static const sb_batch *labelled_source_next(void *labelled)
{
    return sb_labelled_next(labelled);
}

static sb_data_position labelled_source_tell(const void *labelled)
{
    return sb_labelled_tell(labelled);
}

static bool labelled_source_seek(void *labelled, sb_data_position position)
{
    return sb_labelled_seek(labelled, position);
}

static uint64_t labelled_source_hash(const void *labelled)
{
    const sb_labelled *d = labelled;
    const int64_t way[] = {(int64_t)d->options.seed, d->options.batch_pairs,
                           d->options.batch_symbols};
    uint64_t hash = labelled_hash_bytes(0xcbf29ce484222325u, way, sizeof way);
    hash = labelled_hash_bytes(hash, d->label, (size_t)d->count * sizeof *d->label);
    for (int64_t i = 0; i < d->count; i++)
        hash = labelled_hash_bytes(hash, d->text[i].source,
                                   (size_t)d->text[i].source_length * sizeof(int32_t));
    return hash;
}

static int64_t labelled_source_batches(const void *labelled)
{
    const sb_labelled *d = labelled;
    return d->planned == d->next.epoch ? d->epoch.batches : 0;
}

sb_source sb_labelled_as_source(sb_labelled *labelled)
{
    return (sb_source){.object = labelled,
                       .next = labelled_source_next,
                       .tell = labelled_source_tell,
                       .seek = labelled_source_seek,
                       .hash = labelled_source_hash,
                       .batches = labelled_source_batches};
}
