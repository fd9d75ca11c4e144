#include "program/run/training.h"
#include "models/kinds.h"
#include "models/training/agreement.h"
#include "nn/fingerprint.h"
#include "program/run/kind.h"
#include "program/run/log.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/version.h"
#include <string.h>

/* ---- a run that begins with the weights of another model ---- */

/* Takes a setting of the model itself from its file; what was given must be the same. */
static bool from_take_setting(struct training *t, int i)
{
    const struct training_request *r = t->request;
    const struct field_text its = setting_get(&t->loaded->settings, i),
                            given = setting_get(&r->settings, i);
    if (r->given[i] && strcmp(its.text, given.text) != 0)
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
    if (!setting_given(r, "learning-rate"))
        t->settings.trainer.optimiser.schedule.rate = training_usual_rate(&t->settings);
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
    training_choose_steps(t, setting_given(request, "warmup"));
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

static bool training_watch(struct training *t)
{
    return t->request->kind->watch(t) &&
           (t->watched || sb_fail("--report: no held-out text is short enough to draw"));
}

static bool training_open_all(struct training *t)
{
    const struct training_request *request = t->request;
    if (!training_check_ranks(t) || !training_open_paths(t))
        return false;
    t->task = request->task;
    if (file_exists(t->state_path)) {
        t->resumed = true;
        if (!training_lock(t) || !training_load(t) || !training_take_settings(t))
            return false;
    } else if (request->from && !training_load_from(t)) {
        return false;
    }
    t->batch_items = t->settings.data.batch_pairs;
    t->usual_best = BEST_LOSS;
    t->data = memory_new(t->request->kind->data_size);
    if (!t->data)
        return sb_fail("out of memory");
    return t->request->kind->open_texts(t) && (!t->resumed || training_check_data(t)) &&
           t->request->kind->open_data(t) && training_open_model(t) && training_open_trainer(t) &&
           training_choose_best(t) && training_check_best(t) &&
           (!request->report || training_watch(t));
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
    memory_free(t->out);
    memory_free(t->state_path);
    memory_free(t->log_path);
    *t = (struct training){0};
}
