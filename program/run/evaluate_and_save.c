/* Evaluating and saving a training run. */
#include "models/training/diagnosis.h"
#include "program/run/log.h"
#include "program/run/training.h"

bool training_evaluation_due(const struct training *t)
{
    int64_t steps = sb_trainer_steps(t->trainer);
    return steps > 0 && (steps % t->settings.evaluate_every == 0 || steps == t->settings.steps);
}

bool training_finished(const struct training *t)
{
    int64_t patience = t->settings.patience;
    return sb_trainer_steps(t->trainer) >= t->settings.steps ||
           (patience > 0 && t->progress.waited >= patience);
}

static void training_note(struct training *t, const sb_evaluation *scores)
{
    struct progress *p = &t->progress;
    const int64_t step = sb_trainer_steps(t->trainer);
    p->evaluations++;
    p->waited++;
    /* A best model newer than the resumed state is saved again, even if rounding made it worse. */
    if (!training_is_best(t, scores) && step != t->ahead)
        return;
    p->best = *scores;
    p->best_step = step;
    p->waited = 0;
    t->ahead = 0;
}

/* With the averaged weights, if there are any. */
static bool training_measure_and_keep(struct training *t, sb_evaluation *scores)
{
    if (!sb_evaluate(&t->subject, &t->held_source, t->scored, t->batches, scores))
        return false;
    training_note(t, scores);
    if (!training_saves(t))
        return true;
    const struct checkpoint_contents best = {
        .settings = &t->settings, .task = t->task, .progress = &t->progress, .best = true};
    return training_holds_lock(t) &&
           (t->progress.waited > 0 ||
            checkpoint_save(t->out, &t->subject, &best, &t->progress.best_fingerprint)) &&
           training_keep(t);
}

/* The diagnosis of the watched batch, for --report. */
static bool training_diagnose(const struct training *t)
{
    struct diagnosis diagnosis;
    if (!diagnosis_make(&diagnosis, &t->subject, t->watched))
        return false;
    const bool ok = log_diagnosis(t->log, sb_trainer_steps(t->trainer), &diagnosis);
    diagnosis_free(&diagnosis);
    return ok;
}

bool training_evaluate(struct training *t, sb_evaluation *scores)
{
    sb_average *average = sb_trainer_average(t->trainer);
    if (average && !sb_average_swap(average))
        return false;
    bool ok = training_measure_and_keep(t, scores);
    if (average)
        ok = sb_average_swap(average) && ok;
    if (!ok)
        return false;
    sb_optimiser_observe(sb_trainer_optimiser(t->trainer), scores->loss);
    return log_evaluation(t->log, sb_trainer_steps(t->trainer), scores, t->progress.waited == 0) &&
           (!t->watched || training_diagnose(t)) && training_save(t) && training_kept_trim(t);
}

bool training_save(struct training *t)
{
    const struct checkpoint_contents state = {
        .settings = &t->settings, .task = t->task, .trainer = t->trainer, .progress = &t->progress};
    t->progress.finished = training_finished(t);
    return !training_saves(t) ||
           (training_holds_lock(t) && checkpoint_save(t->state_path, &t->subject, &state, NULL) &&
            training_lock(t));
}
