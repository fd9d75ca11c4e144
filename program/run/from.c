/* A training run that begins with the weights of another model. */
#include "models/description_parts.h"
#include "models/training/fingerprint.h"
#include "program/run/kind.h"
#include "program/screen/foreign.h"
#include "program/screen/progress.h"
#include "program/screen/unknown.h"
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
    const struct setting_text its = setting_get(&t->loaded->settings, i),
                              given = setting_get(&r->settings, i);
    if (r->given[i] && strcmp(its.text, given.text) != 0)
        return sb_fail("--%s is %s, but %s has %s; leave the option out", setting_name(i),
                       given.text, r->from, its.text);
    return setting_set(&t->settings, i, its.text);
}

static bool from_take_settings(struct training *t, const struct training_request *r)
{
    struct settings any = t->settings;
    for (int i = 0; setting_name(i); i++) {
        const bool of_model =
            setting_at(&any, i).group == SETTING_OF_MODEL || from_is_of_words(setting_name(i));
        if (of_model && !from_take_setting(t, i, r))
            return false;
    }
    t->settings.model.transformer.ranks = t->heads;
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
    const struct training_kind *its = training_kind_of(t->loaded->subject.kind);
    return sb_fail("%s is a model of --model %s, not of --model %s", r->from,
                   its ? its->name : t->loaded->subject.kind->name, t->kind->name);
}

/* A task has vocabularies of its own. */
bool training_check_words(const struct training *t)
{
    if (!t->loaded || !t->task || t->kind != &training_seq2seq)
        return true;
    const sb_seq2seq *model = t->loaded->subject.self;
    return (description_same_vocabulary(sb_data_source(t->data), sb_seq2seq_source(model)) &&
            description_same_vocabulary(sb_data_target(t->data), sb_seq2seq_target(model))) ||
           sb_fail("the model of --from has other vocabularies than --task %s; train it on files "
                   "with --data, which its own vocabularies encode",
                   t->task);
}

/* How many symbols of the texts a vocabulary lacks. */
static int64_t from_count_unknown(const sb_vocabulary *vocabulary, const char *const *texts,
                                  int64_t n)
{
    int64_t unknown = 0;
    for (int64_t i = 0; i < n; i++)
        unknown += unknown_count(vocabulary, texts[i]);
    return unknown;
}

void training_describe_from(const struct training *t, const struct training_request *r, FILE *out)
{
    const sb_pairs *pairs = training_pairs(t);
    fprintf(out, "from       %s, fingerprint %s\n", foreign(r->from),
            fingerprint_text(t->settings.tuning.base).text);
    if (!pairs || t->kind != &training_seq2seq)
        return;
    const sb_seq2seq *model = t->subject.self;
    const int64_t n = sb_pairs_count(pairs),
                  source = from_count_unknown(sb_seq2seq_source(model), sb_pairs_sources(pairs), n),
                  target = from_count_unknown(sb_seq2seq_target(model), sb_pairs_targets(pairs), n);
    if (source + target > 0)
        fprintf(out,
                "warning    %s symbols of the data (%s of targets) are unknown to its "
                "vocabularies, and the model cannot learn them\n",
                count_text(source + target).text, count_text(target).text);
}
