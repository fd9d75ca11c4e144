/* Evaluating and saving a training run. */
#include "models/translation.h"
#include "program/log.h"
#include "program/training.h"
#include <math.h>

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

static bool training_measure(struct training *t, struct evaluated *e)
{
    sb_evaluation evaluation;
    if (!sb_evaluate(&t->subject, &t->held_source, t->scored, t->batches, &evaluation))
        return false;
    e->loss = evaluation.loss;
    e->error = evaluation.error;
    return true;
}

/* Fewer errors are better; with equal errors, or without decoding, a lower loss. */
static bool training_is_best(const struct progress *p, const struct evaluated *e)
{
    if (p->best_step == 0)
        return true;
    if (!isnan(e->error) && e->error != p->best_error)
        return e->error < p->best_error;
    return e->loss < p->best_loss;
}

static void training_note(struct training *t, struct evaluated *e)
{
    struct progress *p = &t->progress;
    p->evaluations++;
    p->waited++;
    /* The newer best model of training_best.c is saved again, even if rounding made it worse. */
    e->best = training_is_best(p, e) || (t->ahead > 0 && sb_trainer_steps(t->trainer) == t->ahead);
    if (!e->best)
        return;
    p->best_error = e->error;
    p->best_loss = e->loss;
    p->best_step = sb_trainer_steps(t->trainer);
    p->waited = 0;
    t->ahead = 0;
}

static const char *training_task_of(const struct training *t)
{
    return t->task ? t->task : "";
}

/* With the averaged weights, if there are any. */
static bool training_measure_and_keep(struct training *t, struct evaluated *e)
{
    if (!training_measure(t, e))
        return false;
    training_note(t, e);
    return !e->best || !training_saves(t) ||
           checkpoint_save_best(t->out, &t->settings, training_task_of(t), &t->subject,
                                &t->progress);
}

bool training_evaluate(struct training *t, struct evaluated *e)
{
    sb_average *average = sb_trainer_average(t->trainer);
    if (average && !sb_average_swap(average))
        return false;
    bool ok = training_measure_and_keep(t, e);
    if (average)
        ok = sb_average_swap(average) && ok;
    if (!ok)
        return false;
    sb_optimiser_observe(sb_trainer_optimiser(t->trainer), e->loss);
    return log_evaluation(t->log, sb_trainer_steps(t->trainer), e->loss, e->error, e->best) &&
           (!t->watched || training_diagnose(t)) && training_save(t);
}

bool training_save(struct training *t)
{
    t->progress.finished = training_finished(t);
    return !training_saves(t) ||
           checkpoint_save_model(t->state_path, &t->settings, training_task_of(t), &t->subject,
                                 t->trainer, &t->progress);
}
