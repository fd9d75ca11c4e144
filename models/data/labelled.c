#include "models/data/labelled.h"
#include "models/data/cursor.h"
#include "models/data/data_source.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"

struct sb_labelled {
    sb_data_options options;
    sb_vocabulary *vocabulary;
    int64_t count, left_out;
    sb_encoded_pair *text; /* as sources */
    int64_t *label;
    struct cursor cursor;
};

static const struct cursor_items labelled_items;

void sb_labelled_free(sb_labelled *d)
{
    if (!d)
        return;
    for (int64_t i = 0; i < d->count; i++)
        sb_free((void *)(uintptr_t)d->text[i].source);
    memory_free(d->text);
    memory_free(d->label);
    cursor_close(&d->cursor);
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
    sb_data_options o;
    if (!data_complete("labelled", options, &o))
        return NULL;
    sb_labelled *d = memory_new(sizeof *d);
    if (!d)
        return sb_fail("labelled: out of memory");
    *d = (sb_labelled){.options = o,
                       .cursor = {.items = &labelled_items,
                                  .source = d,
                                  .limits = {o.batch_pairs, o.batch_symbols},
                                  .seed = o.seed}};
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

/* ---- epochs ---- */

static const sb_encoded_pair *labelled_list(void *labelled, int64_t epoch, int64_t *count)
{
    const sb_labelled *d = labelled;
    (void)epoch;
    *count = d->count;
    return d->text;
}

static sb_batch *labelled_batch(const void *labelled, int64_t n, const int64_t item[])
{
    const sb_labelled *d = labelled;
    const int32_t **ids = memory_new((size_t)n * sizeof *ids);
    int64_t *numbers = memory_new((size_t)(2 * n) * sizeof *numbers);
    for (int64_t i = 0; ids && numbers && i < n; i++) {
        ids[i] = d->text[item[i]].source;
        numbers[i] = d->text[item[i]].source_length;
        numbers[n + i] = d->label[item[i]];
    }
    sb_batch *batch = ids && numbers
                          ? sb_labelled_batch_new(n, ids, numbers, numbers + n, d->vocabulary)
                          : sb_fail("labelled: out of memory for a batch");
    memory_free(ids);
    memory_free(numbers);
    return batch;
}

static uint64_t labelled_hash(const void *labelled)
{
    const sb_labelled *d = labelled;
    const int64_t way[] = {(int64_t)d->options.seed, d->options.batch_pairs,
                           d->options.batch_symbols};
    uint64_t hash = hash_add(HASH_START, way, sizeof way);
    hash = hash_add(hash, d->label, (size_t)d->count * sizeof *d->label);
    for (int64_t i = 0; i < d->count; i++)
        hash =
            hash_add(hash, d->text[i].source, (size_t)d->text[i].source_length * sizeof(int32_t));
    return hash;
}

static const struct cursor_items labelled_items = {
    .name = "labelled", .list = labelled_list, .batch = labelled_batch, .hash = labelled_hash};

const sb_batch *sb_labelled_next(sb_labelled *d)
{
    return d ? cursor_next(&d->cursor) : fail_null("labelled_next", "labelled");
}

sb_data_position sb_labelled_tell(const sb_labelled *d)
{
    return d ? cursor_tell(&d->cursor) : (sb_data_position){0};
}

bool sb_labelled_seek(sb_labelled *d, sb_data_position position)
{
    return d ? cursor_seek(&d->cursor, position) : fail_null("labelled_seek", "labelled") != NULL;
}

sb_source sb_labelled_as_source(sb_labelled *labelled)
{
    return labelled ? cursor_as_source(&labelled->cursor) : (sb_source){0};
}
