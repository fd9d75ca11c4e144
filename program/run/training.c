#include "program/run/training.h"
#include "models/description_parts.h"
#include "models/kinds.h"
#include "models/training/agreement.h"
#include "models/training/metadata.h"
#include "nn/fingerprint.h"
#include "nn/flat.h"
#include "program/run/kind.h"
#include "program/run/log.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/version.h"
#include <math.h>
#include <string.h>

/* ---- what the command line leaves open ---- */

enum { TASK_WIDTH = 64, TASK_LAYERS = 2 };

/* A small model learns a built-in task in less than a minute. */
void training_choose(struct training_request *r)
{
    sb_transformer_options *o = &r->settings.model.transformer;
    if (r->task && !option_given(r->options, "width"))
        o->width = TASK_WIDTH;
    if (r->task && !option_given(r->options, "encoder-layers"))
        o->encoder_layers = TASK_LAYERS;
    if (r->task && !option_given(r->options, "decoder-layers"))
        o->decoder_layers = TASK_LAYERS;
    if (!option_given(r->options, "running-text"))
        r->settings.model.running_text = !r->task && r->settings.documents == SB_DOCUMENTS_FILES;
    double *rate = &r->settings.trainer.optimiser.schedule.rate;
    if (!sb_option_given(*rate) && o->width > 0)
        *rate = settings_usual_rate(&r->settings);
}

/* ---- defaults that depend on the data ---- */

/* Dates need fewer steps: with three seeds, at most 1 of 1,000 held-out dates is wrong then. */
enum { TASK_STEPS = 2500, DATES_STEPS = 1600, FILE_EPOCHS = 20, LEAST_STEPS = 1000 };

static int64_t training_usual_steps(const struct training *t)
{
    const struct settings *s = &t->settings;
    const bool dates = t->task && strcmp(t->task, sb_task_name(SB_TASK_DATES)) == 0;
    if (t->task)
        return dates && t->request->kind->task_pairs ? DATES_STEPS : TASK_STEPS;
    int64_t steps = FILE_EPOCHS * (t->epoch_items / t->batch_items + 1) / s->trainer.accumulate;
    return steps < LEAST_STEPS ? LEAST_STEPS : steps;
}

static void training_choose_steps(struct training *t, bool warmup_is_given)
{
    struct settings *s = &t->settings;
    if (s->steps == 0)
        s->steps = training_usual_steps(t);
    if (s->evaluate_every == 0)
        s->evaluate_every = s->steps / 20 > 50 ? s->steps / 20 : 50;
    sb_schedule *schedule = &s->trainer.optimiser.schedule;
    schedule->steps = s->steps;
    if (schedule->cycle == 0 && schedule->kind == SB_SCHEDULE_RESTARTS)
        schedule->cycle = s->steps < 4 ? 1 : s->steps / 4;
    if (schedule->warmup >= s->steps && !warmup_is_given)
        schedule->warmup = s->steps / 10;
}

/* ---- a run that continues from its state ---- */

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
static bool training_load(struct training *t)
{
    t->loaded = checkpoint_open(
        t->state_path.text,
        &(struct checkpoint_options){.ranks = t->request->model_ranks, .resumes = true});
    if (!t->loaded || t->loaded->subject.kind == t->request->kind->model)
        return t->loaded != NULL;
    return sb_fail("%s was started with --model %s, not with --model %s", t->out,
                   t->loaded->subject.kind->name, t->request->kind->model->name);
}

static bool training_take_settings(struct training *t)
{
    const struct training_request *request = t->request;
    struct settings stored = t->loaded->settings;
    for (int i = 0; setting_name(i); i++)
        if (option_given(request->options, setting_name(i)) && !training_take_given(&stored, i, t))
            return false;
    t->settings = stored;
    const char *task = request->task ? request->task : "", *was = t->loaded->task;
    if (strcmp(task, was) != 0)
        return sb_fail("%s was started with %s%s, not with %s%s", t->out,
                       was[0] ? "--task " : "files", was, task[0] ? "--task " : "files", task);
    return true;
}

static bool training_check_data(const struct training *t)
{
    if (!t->loaded->has_state)
        return sb_fail("%s has no training state; start without --resume", t->state_path.text);
    return t->loaded->progress.data_hash == t->progress.data_hash ||
           sb_fail("the data differ from those that %s was started with; give those, or another "
                   "--out",
                   t->out);
}

static bool training_take_state(struct training *t)
{
    t->progress = t->loaded->progress;
    t->progress.finished = false;
    return checkpoint_resume(t->loaded, t->trainer) ||
           sb_fail("%s: %s", t->state_path.text, sb_error());
}

/* ---- the best model of a resumed run ---- */

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
            t->out, (long long)step, t->state_path.text, (long long)sb_trainer_steps(t->trainer),
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
                       t->out, t->state_path.text, t->out);
    return sb_fail("%s has the fingerprint %s, expected %s, that of the best model, of step %lld; "
                   "restore that model, or move %s and %s away to start again",
                   t->out, fingerprint_text(d->fingerprint).text,
                   fingerprint_text(p->best_fingerprint).text, (long long)p->best_step, t->out,
                   t->state_path.text);
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

static bool training_check_best(struct training *t)
{
    const long long step = t->progress.best_step;
    struct metadata d;
    if (!t->resumed || (step == 0 && !file_exists(t->out)))
        return true;
    if (!file_exists(t->out))
        return sb_fail("%s, the best model (step %lld), is missing; restore it, or move %s away "
                       "to start again",
                       t->out, step, t->state_path.text);
    if (!metadata_of_file(t->out, &d))
        return sb_fail("%s; restore the best model of the resumed run, or move %s and %s away to "
                       "start again",
                       sb_error(), t->out, t->state_path.text);
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

/* ---- a run that begins with the weights of another model ---- */

/* Takes a setting of the model itself from its file; what was given must be the same. */
static bool from_take_setting(struct training *t, int i)
{
    const struct training_request *r = t->request;
    const struct field_text its = setting_get(&t->loaded->settings, i),
                            given = setting_get(&r->settings, i);
    if (option_given(r->options, setting_name(i)) && strcmp(its.text, given.text) != 0)
        return sb_fail("--%s is %s, but %s has %s; leave the option out", setting_name(i),
                       given.text, r->from, its.text);
    return setting_set(&t->settings, i, its.text);
}

static bool from_take_settings(struct training *t)
{
    const struct training_request *r = t->request;
    for (int i = 0; setting_name(i); i++) {
        const struct field f = setting_at(i);
        if ((f.group == FIELD_OF_MODEL || f.kind & SETTING_OF_WORDS) && !from_take_setting(t, i))
            return false;
    }
    t->settings.tuning.base = t->loaded->settings.tuning.base;
    if (!option_given(r->options, "learning-rate"))
        t->settings.trainer.optimiser.schedule.rate = settings_usual_rate(&t->settings);
    return true;
}

/* Loads the model of --from, with the settings that are its own. */
static bool training_load_from(struct training *t)
{
    const struct training_request *r = t->request;
    const struct checkpoint_options options = {.training = &r->settings,
                                               .ranks = t->request->model_ranks};
    t->loaded = checkpoint_open(r->from, &options);
    if (!t->loaded)
        return false;
    if (t->loaded->subject.kind == t->request->kind->model)
        return from_take_settings(t);
    return sb_fail("%s is a model of --model %s, not of --model %s", r->from,
                   t->loaded->subject.kind->name, t->request->kind->model->name);
}

/* ---- opening and closing ---- */

static bool training_open_model(struct training *t)
{
    if (t->loaded) {
        t->weights = t->loaded->weights;
        t->subject = t->loaded->subject;
        return true;
    }
    text_options_of_kind(&t->settings.model, t->request->kind->model);
    t->weights = sb_parameters_new(t->settings.trainer.seed);
    if (t->weights)
        t->subject = t->request->kind->make(t);
    return t->subject.self && model_join(t->weights);
}

static bool training_open_trainer(struct training *t)
{
    const struct training_request *request = t->request;
    training_choose_steps(t, option_given(request->options, "warmup"));
    sb_trainer_options options = t->settings.trainer;
    options.communicator = t->request->batch_ranks;
    options.sequence_ranks = request->sequence_ranks;
    options.stop = training_interrupted;
    if (!fine_tuning_apply(&t->settings.tuning, t->weights))
        return false;
    t->trainer = sb_trainer_for(&t->subject, &t->source, &options);
    if (!t->trainer || (t->resumed && !training_take_state(t)))
        return false;
    t->progress.source_hash = checkpoint_source_hash(&t->source);
    return true;
}

bool training_writes(const struct training *t)
{
    return sb_communicator_rank(t->request->communicator) == 0;
}

bool training_saves(const struct training *t)
{
    return sb_communicator_rank(t->request->communicator) < t->request->head_ranks;
}

static bool training_open_files(struct training *t)
{
    if (training_writes(t) && !(t->log = log_open(t->log_path.text, sb_trainer_steps(t->trainer))))
        return false;
    /* Saved before the first step, so that --resume continues a run that is killed at any time. */
    return t->resumed ? training_kept_trim(t) : training_save(t);
}

/* Compares the ranks; `ready` is false when this rank has failed. */
static bool training_agree(const struct training *t, bool ready, bool *alike)
{
    const struct rank_state state = {.version = sb_version(),
                                     .failure = ready ? NULL : sb_error(),
                                     .task = t->task ? t->task : "",
                                     .data = t->progress.data_hash,
                                     .weights =
                                         ready ? parameters_fingerprint(t->weights, false) : 0,
                                     .part = ready ? parameters_fingerprint(t->weights, true) : 0,
                                     .steps = sb_trainer_steps(t->trainer),
                                     .sequence_ranks = t->request->sequence_ranks,
                                     .head_ranks = t->request->head_ranks,
                                     .threads = sb_threads(),
                                     .settings = t->settings};
    return agreement_check(t->request->communicator, &state, alike);
}

static bool training_check_ranks(const struct training *t)
{
    const int ranks = sb_communicator_size(t->request->communicator);
    return ranks % t->request->head_ranks == 0 ||
           sb_fail("--split heads=%d needs %d ranks, or a multiple, and not %d; start with mpirun "
                   "-n %d",
                   t->request->head_ranks, t->request->head_ranks, ranks, t->request->head_ranks);
}

static bool training_open_all(struct training *t)
{
    const struct training_request *request = t->request;
    if (!training_check_ranks(t) || !training_open_paths(t))
        return false;
    t->task = request->task;
    if (file_exists(t->state_path.text)) {
        t->resumed = true;
        if (!training_lock(t) || !training_load(t) || !training_take_settings(t))
            return false;
    } else if (request->from && !training_load_from(t)) {
        return false;
    }
    t->batch_items = t->settings.data.batch_pairs;
    t->best = BEST_LOSS;
    t->data = memory_new(t->request->kind->data_size);
    if (!t->data)
        return sb_fail("out of memory");
    return t->request->kind->open_texts(t) && (!t->resumed || training_check_data(t)) &&
           t->request->kind->open_data(t) && training_open_model(t) && training_open_trainer(t) &&
           training_choose_best(t) && training_check_best(t) &&
           (!request->report ||
            (t->request->kind->watch(t) &&
             (t->watched || sb_fail("--report: no held-out text is short enough to draw"))));
}

bool training_open(struct training *t, const struct training_request *request, bool *alike)
{
    *t = (struct training){.request = request, .settings = request->settings, .lock = -1};
    t->settings.model.transformer.ranks = t->request->model_ranks;
    /* No rank writes a file before all ranks have checked which files exist. */
    const bool agreed = training_agree(t, training_open_all(t), alike);
    if (agreed && training_open_files(t))
        return true;
    *alike = *alike && !agreed;
    training_close(t);
    return false;
}

void training_close(struct training *t)
{
    if (t->log)
        fclose(t->log);
    training_unlock(t);
    sb_trainer_free(t->trainer);
    if (t->loaded) {
        checkpoint_free(t->loaded);
    } else {
        sb_model_free(&t->subject);
        sb_parameters_free(t->weights);
    }
    if (t->data)
        t->request->kind->close(t);
    memory_free(t->data);
    sb_batch_free(t->watched);
    memory_free(t->drawn);
    memory_free(t->drawn_target);
    *t = (struct training){0};
}

/* ---- what a run prints of itself ---- */

static void training_describe_model(const struct training *t, FILE *out)
{
    const sb_transformer_options *o = &t->settings.model.transformer;
    const int64_t count = sb_parameters_count(t->weights);
    const int64_t size = parts_size(t->weights, parameters_values(t->weights), 0, count);
    const int64_t trained = parts_size(t->weights, parameters_gradients(t->weights), 0, count);
    const bool encoder = setting_is_of(setting_find("encoder-layers"), t->request->kind->model),
               decoder = setting_is_of(setting_find("decoder-layers"), t->request->kind->model);
    const int layers = encoder ? o->encoder_layers : o->decoder_layers;
    if (encoder && decoder)
        fprintf(out, "model      %d+%d layers, ", o->encoder_layers, o->decoder_layers);
    else
        fprintf(out, "model      %s of %d %s, ", t->request->kind->title, layers,
                layers == 1 ? "layer" : "layers");
    fprintf(out, "width %lld, %lld heads, ", (long long)o->width, (long long)o->heads);
    if (size < 100000)
        fprintf(out, "%s parameters", count_text(size).text);
    else
        fprintf(out, "%.1f M parameters", (double)size / 1e6);
    if (trained < size)
        fprintf(out, ", of which %s are trained", count_text(trained).text);
    fputs("\n", out);
}

static void training_describe_steps(const struct training *t, FILE *out)
{
    const struct settings *s = &t->settings;
    fprintf(out, "training   %s steps of up to %s %s, ", count_text(s->steps).text,
            count_text(t->batch_items * s->trainer.accumulate).text, t->request->kind->items);
    if (s->evaluate_every < s->steps)
        fprintf(out, "evaluated every %s steps\n", count_text(s->evaluate_every).text);
    else
        fputs("evaluated at the end\n", out);
    const int ranks = sb_communicator_size(t->request->communicator);
    if (ranks > 1)
        fprintf(out, "ranks      %d, of %d %s each; Ctrl-C keeps the last checkpoint\n", ranks,
                sb_threads(), sb_threads() == 1 ? "thread" : "threads");
    if (sb_device_in_use() != sb_device_cpu())
        fprintf(out, "device     %s\n", sb_device_description(sb_device_in_use()));
    if (sb_trainer_steps(t->trainer) > 0)
        fprintf(out, "resumed    after step %s\n", count_text(sb_trainer_steps(t->trainer)).text);
}

static void training_describe_from(const struct training *t, FILE *out)
{
    const struct training_request *r = t->request;
    fprintf(out, "from       %s, fingerprint %s\n", foreign(r->from),
            fingerprint_text(t->settings.tuning.base).text);
    if (t->request->kind->describe_unknown)
        t->request->kind->describe_unknown(t, out);
}

void training_describe(const struct training *t, FILE *out)
{
    const struct training_request *request = t->request;
    t->request->kind->describe(t, out);
    if (request->from && !t->resumed)
        training_describe_from(t, out);
    training_describe_model(t, out);
    training_describe_steps(t, out);
}
