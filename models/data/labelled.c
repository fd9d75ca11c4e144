#include "models/data/labelled.h"
#include "models/data/batch_parts.h"
#include "models/data/data_source.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

sb_data *labelled_data(sb_labelled *labelled)
{
    return labelled ? &labelled->data : NULL;
}

void sb_labelled_free(sb_labelled *labelled)
{
    sb_data_free(labelled_data(labelled));
}

static bool labelled_encode(const sb_data *d, const char *source, const char *target,
                            sb_encoded_pair *text)
{
    const int64_t label = sb_labels_find(d->labels, target);
    if (label < 0)
        return sb_fail(
            "labelled: text %lld has the label \"%s\", which is none of the %lld labels in "
            "training; is it a label?",
            (long long)(d->pairs + d->left_out), target, (long long)sb_labels_count(d->labels));
    d->label[d->pairs] = label;
    text->source = sb_vocabulary_encode(d->source, source, &text->source_length, NULL);
    return text->source != NULL;
}

int64_t sb_labelled_count(const sb_labelled *d)
{
    return d ? d->data.pairs : 0;
}

int64_t sb_labelled_left_out(const sb_labelled *d)
{
    return d ? d->data.left_out : 0;
}

static sb_batch *labelled_batch(const void *data, int64_t n, const int64_t item[])
{
    const sb_data *d = data;
    const int32_t **ids = memory_new((size_t)n * sizeof *ids);
    int64_t *numbers = memory_new((size_t)(2 * n) * sizeof *numbers);
    for (int64_t i = 0; ids && numbers && i < n; i++) {
        ids[i] = d->pair[item[i]].source;
        numbers[i] = d->pair[item[i]].source_length;
        numbers[n + i] = d->label[item[i]];
    }
    sb_batch *batch = ids && numbers
                          ? sb_labelled_batch_new(n, ids, numbers, numbers + n, d->source)
                          : sb_fail("labelled: out of memory for a batch");
    memory_free(ids);
    memory_free(numbers);
    return batch;
}

static uint64_t labelled_hash(const void *data)
{
    const sb_data *d = data;
    const int64_t way[] = {(int64_t)d->options.seed, d->options.batch_pairs,
                           d->options.batch_symbols};
    uint64_t hash = hash_add(HASH_START, way, sizeof way);
    hash = hash_add(hash, d->label, (size_t)d->pairs * sizeof *d->label);
    for (int64_t i = 0; i < d->pairs; i++)
        hash =
            hash_add(hash, d->pair[i].source, (size_t)d->pair[i].source_length * sizeof(int32_t));
    return hash;
}

static const struct data_kind labelled_texts = {.items = {.name = "labelled",
                                                          .list = data_list,
                                                          .batch = labelled_batch,
                                                          .hash = labelled_hash},
                                                .things = "texts",
                                                .length = "symbols",
                                                .encode = labelled_encode};

sb_labelled *sb_labelled_new(const sb_pairs *pairs, sb_vocabulary *vocabulary,
                             const sb_labels *labels, const sb_data_options *options)
{
    if (!pairs || !vocabulary || !labels)
        return fail_null("labelled", !pairs ? "pairs" : vocabulary ? "labels" : "vocabulary");
    return (sb_labelled *)data_new(&labelled_texts, pairs, vocabulary, NULL, labels, options);
}

const sb_batch *sb_labelled_next(sb_labelled *d)
{
    return d ? cursor_next(&d->data.cursor) : fail_null("labelled_next", "labelled");
}

sb_data_position sb_labelled_tell(const sb_labelled *d)
{
    return d ? cursor_tell(&d->data.cursor) : (sb_data_position){0};
}

bool sb_labelled_seek(sb_labelled *d, sb_data_position position)
{
    return d ? cursor_seek(&d->data.cursor, position)
             : fail_null("labelled_seek", "labelled") != NULL;
}

sb_source sb_labelled_as_source(sb_labelled *labelled)
{
    return labelled ? cursor_as_source(&labelled->data.cursor) : (sb_source){0};
}

sb_data *labelled_of_source(const sb_source *source)
{
    return cursor_object(source, &labelled_texts.items);
}

/* ---- batches ---- */

enum { LABELLED_TEXT, LABELLED_LENGTHS, LABELLED_POOLING, LABELLED_LABEL };

static void labelled_batch_fill(sb_batch *batch, const int32_t *const ids[], const int64_t length[],
                                const int64_t label[], int64_t begin)
{
    const int64_t L = sb_tensor_dim(batch->part[LABELLED_TEXT].t, 1);
    for (int64_t b = 0; b < batch->items; b++) {
        const int64_t n = length[b] + begin;
        float *pooling = batch_row(batch, LABELLED_POOLING, b);
        *(int32_t *)batch_row(batch, LABELLED_TEXT, b) = SB_SYMBOL_BEGIN;
        batch_write(batch, LABELLED_TEXT, b, begin, ids[b], length[b], SB_SYMBOL_PADDING);
        for (int64_t i = 0; i < L; i++)
            pooling[i] = i < n ? 1 / (float)n : 0;
        *(int32_t *)batch_row(batch, LABELLED_LENGTHS, b) = (int32_t)n;
        *(int32_t *)batch_row(batch, LABELLED_LABEL, b) = label ? (int32_t)label[b] : -1;
    }
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
    static const struct batch_form form[] = {
        [LABELLED_TEXT] = {"text", SB_I32, SB_SEQUENCE_SOURCE},
        [LABELLED_LENGTHS] = {"lengths", SB_I32, SB_SEQUENCE_NONE},
        [LABELLED_POOLING] = {"pooling", SB_F32, SB_SEQUENCE_SOURCE},
        [LABELLED_LABEL] = {"label", SB_I32, SB_SEQUENCE_NONE},
        {0}};
    sb_batch *batch = batch_begin("labelled_batch", n, form, L, 0);
    if (!batch)
        return NULL;
    batch->targets = n;
    batch->source_lengths = "lengths";
    labelled_batch_fill(batch, ids, length, label, begin);
    return batch_end(batch);
}
