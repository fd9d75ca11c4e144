/* A training run that begins with the weights of another model. */
#include "models/training/fingerprint.h"
#include "program/run/kind.h"
#include "program/screen/foreign.h"
#include <string.h>

/* Settings of the data that determine vocabularies, which are the model's own. */
static bool from_is_of_words(const char *name)
{
    static const char *const names[] = {"source-units",     "target-units", "vocabulary",
                                        "joint-vocabulary", "units",        NULL};
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Takes a setting of the model itself from its file; what was given must be the same. */
static bool from_take_setting(struct training *t, int i, const struct training_request *r)
{
    const struct field_text its = setting_get(&t->loaded->settings, i),
                            given = setting_get(&r->settings, i);
    if (r->given[i] && strcmp(its.text, given.text) != 0)
        return sb_fail("--%s is %s, but %s has %s; leave the option out", setting_name(i),
                       given.text, r->from, its.text);
    return setting_set(&t->settings, i, its.text);
}

static bool from_take_settings(struct training *t, const struct training_request *r)
{
    for (int i = 0; setting_name(i); i++) {
        const bool of_model =
            setting_at(i).group == FIELD_OF_MODEL || from_is_of_words(setting_name(i));
        if (of_model && !from_take_setting(t, i, r))
            return false;
    }
    t->settings.tuning.base = t->loaded->settings.tuning.base;
    if (!setting_given(r, "learning-rate"))
        t->settings.trainer.optimiser.schedule.rate = training_usual_rate(&t->settings);
    return true;
}

bool training_load_from(struct training *t, const struct training_request *r)
{
    const struct checkpoint_options options = {.training = &r->settings, .ranks = t->heads};
    t->loaded = checkpoint_open(r->from, &options);
    if (!t->loaded)
        return false;
    if (t->loaded->subject.kind == t->kind->model)
        return from_take_settings(t, r);
    return sb_fail("%s is a model of --model %s, not of --model %s", r->from,
                   t->loaded->subject.kind->name, t->kind->model->name);
}

void training_describe_from(const struct training *t, const struct training_request *r, FILE *out)
{
    fprintf(out, "from       %s, fingerprint %s\n", foreign(r->from),
            fingerprint_text(t->settings.tuning.base).text);
    if (t->kind->describe_unknown)
        t->kind->describe_unknown(t, out);
}
