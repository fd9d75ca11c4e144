#include "program/run/kind.h"
#include "program/options/options.h"
#include "tensor/memory.h"
#include <string.h>

#define ENTRY(name) &training_##name,
static const struct training_kind *const kinds[] = {MODELS(ENTRY) NULL};

const struct training_kind *training_kind_at(int i)
{
    return i >= 0 && i < (int)(sizeof kinds / sizeof *kinds) ? kinds[i] : NULL;
}

const struct training_kind *training_kind_find(const char *name)
{
    for (int i = 0; kinds[i]; i++)
        if (strcmp(kinds[i]->model->name, name) == 0)
            return kinds[i];
    return NULL;
}

const struct training_kind *training_kind_of(const struct checkpoint *c)
{
    return training_kind_find(c->subject.kind->name);
}

bool training_kind_check(const struct checkpoint *c, const char *path,
                         const struct training_kind *expected)
{
    const struct training_kind *kind = training_kind_of(c);
    const bool writes = kind == &training_seq2seq && expected == &training_language_model;
    return kind == expected ||
           sb_fail("%s is %s, expected %s (softback train --model %s)%s", path, kind->title,
                   expected->title, expected->model->name,
                   writes ? "; softback translate runs an encoder-decoder" : "");
}

const struct training_kind *training_kind_of_task(const char *task)
{
    for (int i = 0; kinds[i]; i++)
        if (kinds[i]->task && kinds[i]->task[0] && (!task || strcmp(kinds[i]->task, task) == 0))
            return kinds[i];
    return NULL;
}

bool training_take_task(const struct field *field, void *request, const char *value)
{
    (void)field, (void)request;
    const struct training_kind *other = training_kind_of_task(NULL);
    return training_kind_of_task(value) || option_is_task(value, other ? other->task : NULL);
}

sb_pairs *task_pairs(const char *name, const struct settings *s, sb_part part, int64_t count)
{
    sb_task task;
    if (!sb_task_find(name, &task))
        return NULL;
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
