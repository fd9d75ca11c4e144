#include "models/data/data.h"
#include "models/data/batch_parts.h"
#include "models/data/data_source.h"
#include "models/text/labels_parts.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include <string.h>

static const struct data_kind data_of_task, data_of_pairs;

/* The options with every default filled in; `owner` begins the message of a failure. */
static bool data_complete(const char *owner, const sb_data_options *given, sb_data_options *o)
{
    *o = given ? *given : (sb_data_options){0};
    if (o->batch_pairs < 0 || o->batch_symbols < 0 || o->longest < 0)
        return sb_fail("%s: batch_pairs %lld, batch_symbols %lld or longest %lld is negative",
                       owner, (long long)o->batch_pairs, (long long)o->batch_symbols,
                       (long long)o->longest);
    o->batch_pairs = o->batch_pairs ? o->batch_pairs : 64;
    o->batch_symbols = o->batch_symbols ? o->batch_symbols : 4096;
    o->longest = o->longest ? o->longest : 512;
    return true;
}

static sb_data *data_empty(const struct data_kind *kind, const sb_data_options *options)
{
    sb_data_options o;
    if (!data_complete(kind->items.name, options, &o))
        return NULL;
    sb_data *data = memory_new(sizeof *data);
    if (!data)
        return sb_fail("%s: out of memory", kind->items.name);
    data->kind = kind;
    data->options = o;
    data->cursor = (struct cursor){.items = &kind->items,
                                   .source = data,
                                   .limits = {o.batch_pairs, o.batch_symbols},
                                   .seed = o.seed};
    return data;
}

static void data_free_pair(sb_encoded_pair *pair)
{
    sb_free((void *)(uintptr_t)pair->source);
    sb_free((void *)(uintptr_t)pair->target);
    *pair = (sb_encoded_pair){0};
}

void sb_data_free(sb_data *data)
{
    if (!data)
        return;
    for (int64_t i = 0; data->pair && i <= data->pairs; i++) /* the last one failed, if any did */
        data_free_pair(&data->pair[i]);
    memory_free(data->pair);
    memory_free(data->label);
    cursor_close(&data->cursor);
    sb_vocabulary_release(data->source);
    sb_vocabulary_release(data->target);
    sb_labels_free(data->labels);
    memory_free(data);
}

static bool data_encode(const sb_data *data, const char *source, const char *target,
                        sb_encoded_pair *pair)
{
    pair->vocabulary = data->target;
    pair->source = sb_vocabulary_encode(data->source, source, &pair->source_length, NULL);
    pair->target = pair->source
                       ? sb_vocabulary_encode(data->target, target, &pair->target_length, NULL)
                       : NULL;
    return pair->target != NULL;
}

/* ---- a built-in task ---- */

enum { VOCABULARY_PAIRS = 4000 }; /* in which every symbol of a task occurs */

static bool data_learn(sb_data *data)
{
    sb_pairs *pairs = sb_pairs_new();
    sb_task_pair *pair = memory_new(sizeof *pair);
    bool ok = pairs && (pair || sb_fail("data: out of memory"));
    for (int i = 0; ok && i < VOCABULARY_PAIRS; i++)
        ok = sb_task_make(data->task, &data->task_options, 0, SB_PART_TRAIN, (uint64_t)i, pair) &&
             sb_pairs_add(pairs, pair->source, pair->target);
    const bool digits =
        data->task == SB_TASK_COPY || data->task == SB_TASK_REVERSE || data->task == SB_TASK_SORT;
    const sb_vocabulary_options units = {.units = digits ? SB_UNITS_WORDS : SB_UNITS_CHARACTERS};
    if (ok) {
        data->source = sb_vocabulary_new(sb_pairs_sources(pairs), VOCABULARY_PAIRS, &units);
        data->target = sb_vocabulary_new(sb_pairs_targets(pairs), VOCABULARY_PAIRS, &units);
    }
    sb_pairs_free(pairs);
    memory_free(pair);
    return data->source && data->target;
}

sb_data *sb_data_task_with(sb_task task, const sb_task_options *task_options,
                           const sb_data_options *options)
{
    sb_data *data = data_empty(&data_of_task, options);
    if (!data)
        return NULL;
    data->task = task;
    data->task_options = task_options ? *task_options : (sb_task_options){0};
    if (data_learn(data))
        return data;
    sb_data_free(data);
    return NULL;
}

sb_data *sb_data_task(const char *name, uint64_t seed)
{
    sb_task task;
    sb_data_options options = {.seed = seed};
    return sb_task_find(name, &task) ? sb_data_task_with(task, NULL, &options) : NULL;
}

static sb_batch *data_task_batch(const void *data_, int64_t n, const int64_t item[])
{
    const sb_data *data = data_;
    int64_t made = 0;
    sb_encoded_pair *pair = memory_new((size_t)n * sizeof *pair);
    sb_task_pair *text = memory_new(sizeof *text);
    if (!pair || !text)
        sb_fail("data: out of memory");
    for (bool ok = pair && text; ok && made < n; made += ok)
        ok = sb_task_make(data->task, &data->task_options, data->options.seed, SB_PART_TRAIN,
                          (uint64_t)item[made], text) &&
             data_encode(data, text->source, text->target, &pair[made]);
    sb_batch *batch = pair && made == n ? sb_batch_new(n, pair) : NULL;
    for (int64_t i = 0; pair && i < n; i++)
        data_free_pair(&pair[i]);
    memory_free(pair);
    memory_free(text);
    return batch;
}

/* ---- pairs of texts ---- */

static bool data_encode_all(sb_data *data, const sb_pairs *pairs)
{
    const struct data_kind *kind = data->kind;
    const int64_t n = sb_pairs_count(pairs), longest = data->options.longest;
    data->pair = memory_new((size_t)(n + 1) * sizeof *data->pair);
    data->label = data->labels ? memory_new((size_t)(n + 1) * sizeof *data->label) : NULL;
    if (!data->pair || (data->labels && !data->label))
        return sb_fail("%s: out of memory for %lld %s", kind->items.name, (long long)n,
                       kind->things);
    for (int64_t i = 0; i < n; i++) {
        sb_encoded_pair *p = &data->pair[data->pairs];
        if (!kind->encode(data, sb_pairs_source(pairs, i), sb_pairs_target(pairs, i), p))
            return false;
        if (p->source_length <= longest && p->target_length <= longest) {
            data->pairs++;
            continue;
        }
        data_free_pair(p);
        data->left_out++;
    }
    if (data->pairs > 0)
        return true;
    return sb_fail("%s: none of %lld %s has at most %lld %s", kind->items.name, (long long)n,
                   kind->things, (long long)longest, kind->length);
}

sb_data *data_new(const struct data_kind *kind, const sb_pairs *pairs, sb_vocabulary *source,
                  sb_vocabulary *target, const sb_labels *labels, const sb_data_options *options)
{
    sb_data *data = data_empty(kind, options);
    if (!data)
        return NULL;
    data->source = sb_vocabulary_retain(source);
    data->target = sb_vocabulary_retain(target);
    data->labels = labels ? labels_union(labels, NULL, 0) : NULL;
    if ((data->labels || !labels) && data_encode_all(data, pairs))
        return data;
    sb_data_free(data);
    return NULL;
}

sb_data *sb_data_new(const sb_pairs *pairs, sb_vocabulary *source, sb_vocabulary *target,
                     const sb_data_options *options)
{
    if (!pairs || !source || !target)
        return fail_null("data", !pairs ? "pairs" : !source ? "source" : "target");
    return data_new(&data_of_pairs, pairs, source, target, NULL, options);
}

const sb_encoded_pair *data_list(void *data_, int64_t epoch, int64_t *count)
{
    const sb_data *data = data_;
    (void)epoch;
    *count = data->pairs;
    return data->pair;
}

static sb_batch *data_pair_batch(const void *data_, int64_t n, const int64_t item[])
{
    const sb_data *data = data_;
    sb_encoded_pair *pair = memory_new((size_t)n * sizeof *pair);
    if (!pair)
        return sb_fail("data: out of memory");
    for (int64_t i = 0; i < n; i++)
        pair[i] = data->pair[item[i]];
    sb_batch *batch = sb_batch_new(n, pair);
    memory_free(pair);
    return batch;
}

/* ---- both ---- */

const sb_batch *sb_data_next(sb_data *data)
{
    return data ? cursor_next(&data->cursor) : fail_null("data_next", "data");
}

sb_data_position sb_data_tell(const sb_data *data)
{
    return data ? cursor_tell(&data->cursor) : (sb_data_position){0};
}

bool sb_data_seek(sb_data *data, sb_data_position position)
{
    return data ? cursor_seek(&data->cursor, position) : fail_null("data_seek", "data") != NULL;
}

sb_vocabulary *sb_data_source(const sb_data *data)
{
    return data ? data->source : NULL;
}

sb_vocabulary *sb_data_target(const sb_data *data)
{
    return data ? data->target : NULL;
}

int64_t sb_data_pairs(const sb_data *data)
{
    return data ? data->pairs : 0;
}

int64_t sb_data_left_out(const sb_data *data)
{
    return data ? data->left_out : 0;
}

int64_t sb_data_longest_source(const sb_data *data)
{
    return data ? batch_longest(data->pairs, data->pair, true) : 0;
}

int64_t sb_data_longest_target(const sb_data *data)
{
    return data ? batch_longest(data->pairs, data->pair, false) : 0;
}

int64_t sb_data_batches(const sb_data *data)
{
    return data ? cursor_batches(&data->cursor) : 0;
}

static uint64_t data_hash_ids(uint64_t hash, const int32_t *ids, int64_t n)
{
    return hash_add(hash_add(hash, &n, sizeof n), ids, (size_t)n * sizeof *ids);
}

static uint64_t data_hash(const void *data_)
{
    const sb_data *data = data_;
    const sb_data_options *o = &data->options;
    const int64_t way[] = {(int64_t)o->seed,
                           o->batch_pairs,
                           o->batch_symbols,
                           data->kind == &data_of_task ? (int64_t)data->task : -1,
                           data->task_options.min_length,
                           data->task_options.max_length};
    uint64_t hash = hash_add(HASH_START, way, sizeof way);
    for (int64_t i = 0; i < data->pairs; i++) {
        hash = data_hash_ids(hash, data->pair[i].source, data->pair[i].source_length);
        hash = data_hash_ids(hash, data->pair[i].target, data->pair[i].target_length);
    }
    return hash;
}

uint64_t sb_data_hash(const sb_data *data)
{
    return data ? data_hash(data) : HASH_START;
}

static const struct data_kind data_of_task = {
    .items = {.name = "data", .batch = data_task_batch, .hash = data_hash}};
static const struct data_kind data_of_pairs = {
    .items = {.name = "data", .list = data_list, .batch = data_pair_batch, .hash = data_hash},
    .things = "pairs",
    .length = "symbols on each side",
    .encode = data_encode};

sb_source sb_data_as_source(sb_data *data)
{
    return data ? cursor_as_source(&data->cursor) : (sb_source){0};
}

sb_data *data_of_source(const sb_source *source)
{
    sb_data *data = cursor_object(source, &data_of_task.items);
    return data ? data : cursor_object(source, &data_of_pairs.items);
}
