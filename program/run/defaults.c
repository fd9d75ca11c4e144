/* What a training run uses for options that are not given. */
#include "program/run/kind.h"
#include <math.h>
#include <string.h>

bool setting_given(const struct training_request *request, const char *name)
{
    const int i = setting_find(name);
    return i >= 0 && request->given[i];
}

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
        r->settings.model.running_text = !r->task && r->settings.documents == SB_DOCUMENTS_FILES;
    double *rate = &r->settings.trainer.optimiser.schedule.rate;
    if (!sb_option_given(*rate) && o->width > 0)
        *rate = training_usual_rate(&r->settings);
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

void training_choose_steps(struct training *t, bool warmup_is_given)
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
