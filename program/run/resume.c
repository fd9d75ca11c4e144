/* A training run that continues from its state. */
#include "program/run/kind.h"
#include "tensor/failure.h"
#include <string.h>

/* Takes a setting that was given with --resume: only the length of the training may change. */
static bool training_take_given(struct settings *stored, int i, const struct training *t,
                                const struct training_request *request)
{
    const char *name = setting_name(i);
    struct field_text given = setting_get(&request->settings, i), was = setting_get(stored, i);
    bool steps = strcmp(name, "steps") == 0, every = strcmp(name, "evaluate-every") == 0;
    bool left_open = (steps || every) && strcmp(given.text, "0") == 0;
    if (left_open || strcmp(given.text, was.text) == 0)
        return true;
    if (steps || strcmp(name, "patience") == 0)
        return setting_set(stored, i, given.text);
    return sb_fail("--%s is %s, but %s was started with %s", name, given.text, t->out, was.text);
}

/* Takes the state of a run of the same kind of models. */
bool training_load(struct training *t)
{
    t->loaded = checkpoint_open(t->state_path, &(struct checkpoint_options){.ranks = t->heads});
    if (!t->loaded || t->loaded->subject.kind == t->kind->model)
        return t->loaded != NULL;
    return sb_fail("%s was started with --model %s, not with --model %s", t->out,
                   t->loaded->subject.kind->name, t->kind->model->name);
}

bool training_take_settings(struct training *t, const struct training_request *request)
{
    struct settings stored = t->loaded->settings;
    for (int i = 0; setting_name(i); i++)
        if (request->given[i] && !training_take_given(&stored, i, t, request))
            return false;
    t->settings = stored;
    const char *task = request->task ? request->task : "", *was = t->loaded->task;
    if (strcmp(task, was) != 0)
        return sb_fail("%s was started with %s%s, not with %s%s", t->out,
                       was[0] ? "--task " : "files", was, task[0] ? "--task " : "files", task);
    return true;
}

bool training_check_data(const struct training *t)
{
    if (!t->loaded->has_state)
        return sb_fail("%s has no training state; start without --resume", t->state_path);
    return t->loaded->progress.data_hash == t->progress.data_hash ||
           sb_fail("the data differ from those that %s was started with; give those, or another "
                   "--out",
                   t->out);
}

bool training_take_state(struct training *t)
{
    t->progress = t->loaded->progress;
    t->progress.finished = false;
    return checkpoint_resume(t->loaded, t->state_path, t->trainer);
}
