#include "program/run/task_pairs.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

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
