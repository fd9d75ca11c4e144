/* A training run that continues from its state. */
#include "models/description_parts.h"
#include "models/training/metadata.h"
#include "nn/fingerprint.h"
#include "program/run/kind.h"
#include "program/run/training.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include <string.h>

/* Takes a setting that was given with --resume: only the length of the training may change. */
static bool training_take_given(struct settings *stored, int i, const struct training *t)
{
    const char *name = setting_name(i);
    struct field_text given = setting_get(&t->request->settings, i), was = setting_get(stored, i);
    bool left_open = strcmp(given.text, "0") == 0 &&
                     (strcmp(name, "steps") == 0 || strcmp(name, "evaluate-every") == 0);
    if (left_open || strcmp(given.text, was.text) == 0)
        return true;
    if (setting_at(i).kind & SETTING_MAY_CHANGE)
        return setting_set(stored, i, given.text);
    return sb_fail("--%s is %s, but %s was started with %s", name, given.text, t->out, was.text);
}

/* Takes the state of a run of the same kind of models. */
bool training_load(struct training *t)
{
    t->loaded = checkpoint_open(
        t->state_path,
        &(struct checkpoint_options){.ranks = t->request->model_ranks, .resumes = true});
    if (!t->loaded || t->loaded->subject.kind == t->request->kind->model)
        return t->loaded != NULL;
    return sb_fail("%s was started with --model %s, not with --model %s", t->out,
                   t->loaded->subject.kind->name, t->request->kind->model->name);
}

bool training_take_settings(struct training *t)
{
    const struct training_request *request = t->request;
    struct settings stored = t->loaded->settings;
    for (int i = 0; setting_name(i); i++)
        if (request->given[i] && !training_take_given(&stored, i, t))
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
    return checkpoint_resume(t->loaded, t->trainer) || sb_fail("%s: %s", t->state_path, sb_error());
}

/* ---- its best model ---- */

/*
 * The best model of a resumed run: whether its file exists and is the one that the state names.
 *
 * An evaluation saves the best model first and the state after it. A run that is killed between the
 * two leaves a model that is newer than the state. The resumed run repeats the steps between and
 * saves the same model again, so a model of the same run and of a later step is accepted.
 */

/* Except for those that --resume may change. */
static bool best_same_settings(const struct settings *a, const struct settings *b)
{
    for (int i = 0; setting_name(i); i++)
        if (!(setting_at(i).kind & SETTING_MAY_CHANGE) &&
            strcmp(setting_get(a, i).text, setting_get(b, i).text) != 0)
            return false;
    return true;
}

/* Whether a model has the task, settings and vocabularies of this run. */
static bool best_same_kind(const struct training *t, const struct metadata *d)
{
    struct settings its;
    sb_description *own = sb_model_describe(&t->subject);
    const bool same = own && !d->has_state && strcmp(d->task, t->loaded->task) == 0 &&
                      strcmp(sb_description_kind(d->model), sb_description_kind(own)) == 0 &&
                      settings_read(&its, d->model) &&
                      best_same_settings(&its, &t->loaded->settings) &&
                      description_same_words(d->model, own);
    sb_description_free(own);
    return same;
}

static bool best_is_newer(const struct training *t, const struct metadata *d)
{
    return d->has_best && d->best.step > sb_trainer_steps(t->trainer) &&
           d->best.data_hash == t->progress.data_hash && best_same_kind(t, d);
}

/* Accepts a newer model if the resumed run evaluates at its step, where it is saved again. */
static bool best_take_newer(struct training *t, int64_t step)
{
    const struct settings *s = &t->settings;
    if (step > s->steps || (step % s->evaluate_every != 0 && step != s->steps))
        return sb_fail(
            "%s is of step %lld, later than %s (step %lld), and a run with --steps %lld does not "
            "evaluate at that step; resume with --steps %lld first",
            t->out, (long long)step, t->state_path, (long long)sb_trainer_steps(t->trainer),
            (long long)s->steps, (long long)step);
    t->ahead = step;
    return true;
}

static bool best_refuse(const struct training *t, const struct metadata *d)
{
    const struct progress *p = &t->progress;
    if (p->best_step == 0)
        return sb_fail("%s exists, but %s was saved before the first evaluation, and %s is not a "
                       "later model of the same run; move it away",
                       t->out, t->state_path, t->out);
    return sb_fail("%s has the fingerprint %s, expected %s, that of the best model, of step %lld; "
                   "restore that model, or move %s and %s away to start again",
                   t->out, fingerprint_text(d->fingerprint).text,
                   fingerprint_text(p->best_fingerprint).text, (long long)p->best_step, t->out,
                   t->state_path);
}

static bool best_compare(struct training *t, const struct metadata *d)
{
    const struct progress *p = &t->progress;
    if (p->best_step > 0 && p->best_fingerprint == d->fingerprint)
        return true;
    if (best_is_newer(t, d))
        return best_take_newer(t, d->best.step);
    return best_refuse(t, d);
}

bool training_check_best(struct training *t)
{
    const long long step = t->progress.best_step;
    struct metadata d;
    if (!t->resumed || (step == 0 && !file_exists(t->out)))
        return true;
    if (!file_exists(t->out))
        return sb_fail("%s, the best model (step %lld), is missing; restore it, or move %s away "
                       "to start again",
                       t->out, step, t->state_path);
    if (!metadata_of_file(t->out, &d))
        return sb_fail("%s; restore the best model of the resumed run, or move %s and %s away to "
                       "start again",
                       sb_error(), t->out, t->state_path);
    const bool ok = best_compare(t, &d);
    metadata_free(&d);
    return ok;
}

bool training_check_ahead(const struct training *t)
{
    return t->ahead == 0 ||
           sb_fail("%s is the best model, of step %lld, but this run stopped earlier; resume with "
                   "the --patience of the run that saved it",
                   t->out, (long long)t->ahead);
}
