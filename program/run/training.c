#include "program/run/training.h"
#include "models/training/agreement.h"
#include "nn/flat.h"
#include "program/run/kind.h"
#include "program/run/log.h"
#include "program/run/paths.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/version.h"
#include <math.h>
#include <string.h>

bool setting_given(const struct training_request *request, const char *name)
{
    const int i = setting_find(name);
    return i >= 0 && request->given[i];
}

/* ---- defaults ---- */

enum { TASK_WIDTH = 64, TASK_LAYERS = 2 };

double training_usual_rate(const struct settings *s)
{
    const double width = (double)s->model.transformer.width;
    return s->trainer.optimiser_kind == SB_OPTIMISER_SGD ? 0.1 : 0.024 / sqrt(width);
}

/* A small model learns a built-in task in less than a minute. The learning rate is proportional to
   1 / sqrt(width) (Vaswani et al. 2017), and the factor does well at width 64. */
void training_choose(struct training_request *r)
{
    sb_transformer_options *o = &r->settings.model.transformer;
    if (r->task && !setting_given(r, "width"))
        o->width = TASK_WIDTH;
    if (r->task && !setting_given(r, "encoder-layers"))
        o->encoder_layers = TASK_LAYERS;
    if (r->task && !setting_given(r, "decoder-layers"))
        o->decoder_layers = TASK_LAYERS;
    if (!setting_given(r, "running-text"))
        r->settings.language.running_text = !r->task && r->settings.documents == SB_DOCUMENTS_FILES;
    double *rate = &r->settings.trainer.optimiser.schedule.rate;
    if (!sb_option_given(*rate) && o->width > 0)
        *rate = training_usual_rate(&r->settings);
}

/* ---- files ---- */

/* Only the first rank writes; the folders may not exist where others run. */
static bool training_check_paths(const struct training *t, const struct training_request *r)
{
    struct paths paths = {0};
    char *bad_batch = training_bad_batch(t, 1);
    paths_add(&paths, PATH_NEW, "--out", t->out);
    paths_add(&paths, PATH_NEW, "the state of --out", t->state_path);
    paths_add(&paths, PATH_LOG, r->log ? "--log" : "--log (by default)", t->log_path);
    paths_add(&paths, PATH_PAGE, "--report", r->report);
    paths_add(&paths, PATH_NEW, "the bad batch of --out", bad_batch);
    for (int i = 0; i < r->file_count; i++)
        paths_add(&paths, PATH_READ, "--data", r->files[i]);
    paths_add(&paths, PATH_READ, "--from", r->from);
    paths_add(&paths, PATH_READ, "--valid", r->valid);
    paths_add(&paths, PATH_READ, "--source-file", r->source_file);
    paths_add(&paths, PATH_READ, "--target-file", r->target_file);
    memory_free(bad_batch);
    return training_add_kept(t, &paths) && paths_check(&paths);
}

static bool training_open_paths(struct training *t, const struct training_request *request)
{
    t->out = memory_text(request->out);
    t->state_path = paths_beside(request->out, ".state", NULL);
    t->log_path =
        request->log ? memory_text(request->log) : paths_beside(request->out, "", ".jsonl");
    if (!t->out || !t->state_path || !t->log_path)
        return sb_fail("out of memory");
    if (training_writes(t) && !training_check_paths(t, request))
        return false;
    bool model = file_exists(t->out), state = file_exists(t->state_path);
    if (!state && training_writes(t) && !training_kept_none(t))
        return false;
    if (!request->resume && model && !state)
        return sb_fail("%s exists already, without the state to continue its training from; name "
                       "another --out",
                       t->out);
    if (!request->resume && state)
        return sb_fail("%s exists already; use --resume to continue, or name another --out",
                       model ? t->out : t->state_path);
    if (model && !state)
        return sb_fail("%s exists, but %s, its training state, does not; name another --out",
                       t->out, t->state_path);
    return true;
}

/* ---- defaults that depend on the data ---- */

/* Dates need fewer steps: with three seeds, at most 1 of 1,000 held-out dates is wrong then. */
enum { TASK_STEPS = 2500, DATES_STEPS = 1600, FILE_EPOCHS = 20, LEAST_STEPS = 1000 };

static int64_t training_usual_steps(const struct training *t)
{
    const struct settings *s = &t->settings;
    const bool dates = t->task && strcmp(t->task, sb_task_name(SB_TASK_DATES)) == 0;
    if (t->task)
        return dates && t->kind->task_pairs ? DATES_STEPS : TASK_STEPS;
    int64_t steps = FILE_EPOCHS * t->kind->epoch_batches(t) / s->trainer.accumulate;
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

/* ---- resuming ---- */

/* Takes a setting that was given with --resume: only the length of the training may change. */
static bool training_take_given(struct settings *stored, int i, const struct training *t,
                                const struct training_request *request)
{
    const char *name = setting_name(i);
    struct setting_text given = setting_get(&request->settings, i), was = setting_get(stored, i);
    bool steps = strcmp(name, "steps") == 0, every = strcmp(name, "evaluate-every") == 0;
    bool left_open = (steps || every) && strcmp(given.text, "0") == 0;
    if (left_open || strcmp(given.text, was.text) == 0)
        return true;
    if (steps || strcmp(name, "patience") == 0)
        return setting_set(stored, i, given.text);
    return sb_fail("--%s is %s, but %s was started with %s", name, given.text, t->out, was.text);
}

/* Takes the state of a run of the same kind of models. */
static bool training_load(struct training *t)
{
    t->loaded = checkpoint_open(t->state_path, &(struct checkpoint_options){.ranks = t->heads});
    if (!t->loaded || t->loaded->subject.kind == t->kind->model)
        return t->loaded != NULL;
    return sb_fail("%s was started with --model %s, not with --model %s", t->out,
                   t->loaded->subject.kind->name, t->kind->model->name);
}

static bool training_take_settings(struct training *t, const struct training_request *request)
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

static bool training_take_state(struct training *t)
{
    if (!t->loaded->has_state)
        return sb_fail("%s has no training state; start without --resume", t->state_path);
    if (t->loaded->progress.data_hash != t->progress.data_hash)
        return sb_fail(
            "the data differ from those that %s was started with; give those, or another --out",
            t->out);
    t->progress = t->loaded->progress;
    t->progress.finished = false;
    return checkpoint_resume(t->loaded, t->state_path, t->trainer);
}

/* ---- opening and closing ---- */

static bool training_open_model(struct training *t)
{
    if (t->loaded) {
        t->weights = t->loaded->weights;
        t->subject = t->loaded->subject;
        return true;
    }
    t->settings.model.transformer.ranks = t->heads;
    t->weights = sb_parameters_new(t->settings.trainer.seed);
    return t->weights && t->kind->open_model(t);
}

static bool training_open_trainer(struct training *t, const struct training_request *request)
{
    training_choose_steps(t, setting_given(request, "warmup"));
    sb_trainer_options options = t->settings.trainer;
    options.communicator = t->batches;
    options.sequence_ranks = request->sequence_ranks;
    options.stop = training_interrupted;
    if (!fine_tuning_apply(&t->settings.tuning, t->weights))
        return false;
    t->trainer = sb_trainer_for(&t->subject, &t->source, &options);
    return t->trainer && (!t->resumed || training_take_state(t));
}

bool training_writes(const struct training *t)
{
    return sb_communicator_rank(t->communicator) == 0;
}

bool training_saves(const struct training *t)
{
    return sb_communicator_rank(t->communicator) < t->head_ranks;
}

static bool training_open_files(struct training *t)
{
    if (training_writes(t) && !(t->log = log_open(t->log_path, sb_trainer_steps(t->trainer))))
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
                                     .sequence_ranks = t->sequence_ranks,
                                     .head_ranks = t->head_ranks,
                                     .threads = sb_threads(),
                                     .settings = t->settings};
    return agreement_check(t->communicator, &state, alike);
}

static bool training_check_ranks(const struct training *t)
{
    const int ranks = sb_communicator_size(t->communicator);
    return ranks % t->head_ranks == 0 ||
           sb_fail("--split heads=%d needs %d ranks, or a multiple, and not %d; start with mpirun "
                   "-n %d",
                   t->head_ranks, t->head_ranks, ranks, t->head_ranks);
}

static bool training_open_all(struct training *t, const struct training_request *request)
{
    if (!training_check_ranks(t) || !training_open_paths(t, request))
        return false;
    t->task = request->task;
    if (file_exists(t->state_path)) {
        t->resumed = true;
        if (!training_lock(t) || !training_load(t) || !training_take_settings(t, request))
            return false;
    } else if (request->from && !training_load_from(t, request)) {
        return false;
    }
    t->learned = memory_new(t->kind->learned);
    if (!t->learned)
        return sb_fail("out of memory");
    memset(t->learned, 0, t->kind->learned);
    return t->kind->open_texts(t, request) && t->kind->open_data(t) && training_open_model(t) &&
           training_open_trainer(t, request) && training_choose_best(t) && training_check_best(t) &&
           (!request->report || t->kind->watch(t));
}

bool training_open(struct training *t, const struct training_request *request, bool *alike)
{
    *t = (struct training){.kind = request->kind,
                           .settings = request->settings,
                           .communicator = request->communicator,
                           .heads = request->heads,
                           .batches = request->batches,
                           .sequence_ranks = request->sequence_ranks,
                           .head_ranks = request->head_ranks,
                           .lock = -1};
    /* No rank writes a file before all ranks have checked which files exist. */
    const bool agreed = training_agree(t, training_open_all(t, request), alike);
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
    if (t->learned)
        t->kind->close(t);
    memory_free(t->learned);
    sb_batch_free(t->watched);
    memory_free(t->out);
    memory_free(t->state_path);
    memory_free(t->log_path);
    *t = (struct training){0};
}
