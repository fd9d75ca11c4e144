/* The data of a training run: pairs, vocabularies, batches. */
#include "program/run/training.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include <string.h>

static sb_pairs *training_make_pairs(sb_task task, const struct settings *s, sb_part part,
                                     int64_t count)
{
    sb_pairs *pairs = sb_pairs_new();
    sb_task_pair *pair = memory_new(sizeof *pair);
    bool ok = pairs && (pair || sb_fail("out of memory"));
    for (int64_t i = 0; ok && i < count; i++)
        ok = sb_task_make(task, &s->task, s->trainer.seed, part, (uint64_t)i, pair) &&
             sb_pairs_add(pairs, pair->source, pair->target);
    memory_free(pair);
    if (ok)
        return pairs;
    sb_pairs_free(pairs);
    return NULL;
}

sb_pairs *training_task_pairs(const char *name, const struct settings *settings, sb_part part,
                              int64_t count)
{
    sb_task task;
    return sb_task_find(name, &task) ? training_make_pairs(task, settings, part, count) : NULL;
}

const sb_pairs *training_pairs(const struct training *t)
{
    return t->rest ? t->rest : t->read;
}

/* Holds out one pair in twenty, at least one and at most 2,000. */
static bool training_divide(struct training *t, const char *file)
{
    int64_t held = sb_pairs_count(t->read) / 20;
    if (sb_pairs_count(t->read) < 2)
        return sb_fail("%s has one pair; held-out pairs need another, or give --valid", file);
    held = held < 1 ? 1 : held > 2000 ? 2000 : held;
    return sb_pairs_divide(t->read, held, &t->rest, &t->held);
}

bool training_read_pairs(struct training *t, const struct training_request *request)
{
    t->read = request->data ? sb_pairs_read(request->data, NULL)
                            : sb_pairs_read_two(request->source_file, request->target_file, NULL);
    if (!t->read)
        return false;
    if (!request->valid)
        return training_divide(t, request->data ? request->data : request->source_file);
    t->held = sb_pairs_read(request->valid, NULL);
    return t->held != NULL;
}

/* Chooses the pairs that evaluations decode by hashes of the sources: files are often sorted. */
static bool training_choose_sample(struct training *t)
{
    int64_t limit = t->settings.evaluate_pairs;
    sb_pairs *rest;
    if (limit == 0 || sb_pairs_count(t->held) <= limit)
        return true;
    if (!sb_pairs_divide(t->held, limit, &rest, &t->sample))
        return false;
    sb_pairs_free(rest);
    return true;
}

/* Adds the texts of pairs, so that a resumed run notices other data. */
static uint64_t training_hash_pairs(uint64_t hash, const sb_pairs *pairs)
{
    for (int64_t i = 0, n = sb_pairs_count(pairs); i < 2 * n; i++) {
        const char *text = i < n ? sb_pairs_source(pairs, i) : sb_pairs_target(pairs, i - n);
        hash = hash_add(hash, text, strlen(text) + 1);
    }
    return hash;
}

uint64_t training_pairs_mark(const struct training *t)
{
    const uint64_t rest = training_hash_pairs(HASH_START, training_pairs(t));
    return training_hash_pairs(rest, t->held) >> 1; /* JSON's integers are signed */
}

bool training_open_texts(struct training *t, const struct training_request *request)
{
    enum { HELD_OUT = 500 }; /* of a task, when evaluations decode none */
    int64_t count = t->settings.evaluate_pairs ? t->settings.evaluate_pairs : HELD_OUT;
    if (request->task)
        t->held = training_task_pairs(request->task, &t->settings, SB_PART_VALID, count);
    else if (!training_read_pairs(t, request))
        return false;
    if (!t->held || !training_choose_sample(t))
        return false;
    t->progress.data_hash = training_pairs_mark(t);
    return true;
}

static sb_vocabulary *training_learn(const struct settings *s, sb_units units,
                                     const char *const *texts, int64_t count)
{
    sb_vocabulary_options options = {.units = units, .size = s->vocabulary};
    return sb_vocabulary_new(texts, count, &options);
}

static sb_vocabulary *training_learn_joint(const struct training *t)
{
    int64_t n = sb_pairs_count(training_pairs(t));
    const char **both = memory_new((size_t)(2 * n) * sizeof(char *));
    if (!both)
        return sb_fail("out of memory");
    memcpy(both, sb_pairs_sources(training_pairs(t)), (size_t)n * sizeof(char *));
    memcpy(both + n, sb_pairs_targets(training_pairs(t)), (size_t)n * sizeof(char *));
    sb_vocabulary *joint = training_learn(&t->settings, t->settings.source_units, both, 2 * n);
    memory_free(both);
    return joint;
}

/* The vocabularies of files, retained: those of the model that is resumed, or new ones. */
static bool training_find_vocabularies(const struct training *t, sb_vocabulary **source,
                                       sb_vocabulary **target)
{
    const struct settings *s = &t->settings;
    int64_t n = sb_pairs_count(training_pairs(t));
    if (t->loaded) {
        *source = sb_vocabulary_retain(sb_seq2seq_source(t->loaded->subject.self));
        *target = sb_vocabulary_retain(sb_seq2seq_target(t->loaded->subject.self));
    } else if (s->joint_vocabulary) {
        *source = training_learn_joint(t);
        *target = sb_vocabulary_retain(*source);
    } else {
        *source = training_learn(s, s->source_units, sb_pairs_sources(training_pairs(t)), n);
        *target = *source
                      ? training_learn(s, s->target_units, sb_pairs_targets(training_pairs(t)), n)
                      : NULL;
    }
    return *target != NULL;
}

static sb_data *data_from_files(const struct training *t, const sb_data_options *options)
{
    sb_vocabulary *source = NULL, *target = NULL;
    sb_data *data = training_find_vocabularies(t, &source, &target)
                        ? sb_data_new(training_pairs(t), source, target, options)
                        : NULL;
    sb_vocabulary_release(source);
    sb_vocabulary_release(target);
    return data;
}

int64_t training_longest(const struct training *t)
{
    sb_transformer_options o = {0};
    sb_transformer_complete(&t->settings.model.transformer, &o);
    int64_t longest = t->settings.data.longest;
    bool learned = o.positions == SB_POSITIONS_LEARNED && o.longest > 1 && o.longest <= longest;
    return learned ? o.longest - 1 : longest;
}

bool training_open_data(struct training *t)
{
    sb_data_options options = t->settings.data;
    options.seed = t->settings.trainer.seed;
    options.longest = training_longest(t);
    sb_task task;
    if (!t->task)
        t->data = data_from_files(t, &options);
    else if (sb_task_find(t->task, &task))
        t->data = sb_data_task_with(task, &t->settings.task, &options);
    if (t->data)
        t->held_data =
            sb_data_new(t->held, sb_data_source(t->data), sb_data_target(t->data), &options);
    return t->held_data != NULL;
}
