/* The score by which a training run chooses its best model: --best. */
#include "program/run/kind.h"
#include <math.h>

bool training_choose_best(struct training *t)
{
    const best_score asked = t->settings.best;
    t->best = asked == BEST_AUTO ? t->usual_best : asked;
    return t->best == BEST_LOSS || t->scored ||
           sb_fail("--best %s needs texts that are decoded, and --evaluate-pairs is 0; use --best "
                   "loss, or evaluate some pairs",
                   setting_get(&t->settings, setting_find("best")).text);
}

/* Lower is better. */
static double training_score(const struct training *t, const sb_evaluation *e)
{
    return t->best == BEST_LOSS    ? e->loss
           : t->best == BEST_BLEU  ? -e->bleu
           : t->best == BEST_ERROR ? e->unit_error
                                   : e->error;
}

/* With equal scores fewer errors are better; with equal errors, or none decoded, a lower loss. */
bool training_is_best(const struct training *t, const sb_evaluation *e)
{
    const sb_evaluation *was = &t->progress.best;
    const double is[] = {training_score(t, e), e->error},
                 before[] = {training_score(t, was), was->error};
    if (t->progress.best_step == 0)
        return true;
    for (int i = 0; i < 2; i++)
        if (!isnan(is[i]) && !isnan(before[i]) && is[i] != before[i])
            return is[i] < before[i];
    return e->loss < was->loss;
}
