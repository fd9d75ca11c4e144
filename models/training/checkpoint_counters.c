#include "models/training/checkpoint_counters.h"
#include "models/training/fingerprint.h"
#include "tensor/failure.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct metadata, member)

const struct counter state_counters[] = {
    {"steps", WHOLE, AT(state.steps)},
    {"skipped_in_a_row", WHOLE, AT(state.skipped_in_a_row)},
    {"updates", WHOLE, AT(state.updates)},
    {"average_updates", WHOLE, AT(state.average_updates)},
    {"random_position", WHOLE, AT(state.random_position)},
    {"epoch", WHOLE, AT(state.data.epoch)},
    {"batch", WHOLE, AT(state.data.batch)},
    {"plateau_best", REAL, AT(state.plateau.best)},
    {"plateau_seen", WHOLE, AT(state.plateau.seen)},
    {"plateau_waited", SMALL, AT(state.plateau.waited)},
    {"plateau_reduced", SMALL, AT(state.plateau.reduced)},
    {"evaluations", WHOLE, AT(progress.evaluations)},
    {"best_error", REAL, AT(progress.best.error)},
    {"best_loss", REAL, AT(progress.best.loss)},
    {"best_step", WHOLE, AT(progress.best_step)},
    {"waited", WHOLE, AT(progress.waited)},
    {"data_hash", WHOLE, AT(progress.data_hash)},
    {"best_fingerprint", MARK, AT(progress.best_fingerprint)},
    {"best_unit_error", REAL, AT(progress.best.unit_error)},
    {"best_bleu", REAL, AT(progress.best.bleu)},
    {"finished", FLAG, AT(progress.finished)},
    {"kept", MODELS, AT(progress.kept)},
    {NULL, WHOLE, 0},
};

const struct counter best_counters[] = {
    {"step", WHOLE, AT(best.step)},
    {"data_hash", WHOLE, AT(best.data_hash)},
    {NULL, WHOLE, 0},
};

const struct counter base_counters[] = {
    {"fingerprint", MARK, AT(base)},
    {"adapters", FLAG, AT(adapters)},
    {NULL, WHOLE, 0},
};

static json_t *counter_models_to_json(const struct kept *kept)
{
    json_t *all = json_object();
    char step[24];
    for (int i = 0; i < kept->count; i++) {
        snprintf(step, sizeof step, "%lld", (long long)kept->model[i].step);
        json_t *mark = json_string(fingerprint_text(kept->model[i].fingerprint).text);
        if (json_object_set_new(all, step, mark) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static json_t *counter_to_json(const struct metadata *d, const struct counter *c)
{
    const char *place = (const char *)d + c->offset;
    char text[40];
    int64_t whole;
    uint64_t mark;
    double real;
    if (c->type == MODELS)
        return counter_models_to_json((const void *)place);
    if (c->type == FLAG)
        return json_boolean(*(const bool *)place);
    if (c->type == SMALL)
        return json_integer(*(const int *)(const void *)place);
    if (c->type == WHOLE) {
        memcpy(&whole, place, sizeof whole);
        return json_integer(whole);
    }
    if (c->type == MARK) {
        memcpy(&mark, place, sizeof mark);
        return json_string(fingerprint_text(mark).text);
    }
    memcpy(&real, place, sizeof real);
    snprintf(text, sizeof text, "%a", real);
    return json_string(text);
}

json_t *counters_to_json(const struct metadata *d, const struct counter *counters)
{
    json_t *all = json_object();
    for (const struct counter *c = counters; c->name; c++)
        if (json_object_set_new(all, c->name, counter_to_json(d, c)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

static bool counter_read_whole(const char *owner, const struct counter *c, int64_t whole,
                               void *place)
{
    int64_t most = c->type == SMALL ? 1000000 : INT64_MAX;
    if (whole < 0 || whole > most)
        return sb_fail("checkpoint: the %s's \"%s\" is %lld; it must be in 0..%lld", owner, c->name,
                       (long long)whole, (long long)most);
    if (c->type == SMALL)
        *(int *)place = (int)whole;
    else
        memcpy(place, &whole, sizeof whole);
    return true;
}

static bool counter_read_real(const char *text, void *place)
{
    char *end = NULL;
    const double real = strtod(text, &end);
    memcpy(place, &real, sizeof real);
    return end != text && *end == '\0';
}

static bool counter_read_mark(const json_t *value, void *place)
{
    uint64_t mark = 0;
    const bool ok = json_is_string(value) && fingerprint_parse(json_string_value(value), &mark);
    memcpy(place, &mark, sizeof mark);
    return ok;
}

/* Steps rise, and are written without zeros in front. */
static bool counter_read_models(const json_t *all, struct kept *kept)
{
    const char *key;
    json_t *value;
    *kept = (struct kept){0};
    if (!json_is_object(all) || json_object_size(all) > MOST_KEPT + 1)
        return false;
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        char same[24];
        const int64_t step = strtoll(key, NULL, 10),
                      before = kept->count ? kept->model[kept->count - 1].step : 0;
        snprintf(same, sizeof same, "%lld", (long long)step);
        if (strcmp(key, same) != 0 || step <= before || !json_is_string(value) ||
            !fingerprint_parse(json_string_value(value), &kept->model[kept->count].fingerprint))
            return false;
        kept->model[kept->count++].step = step;
    }
    return true;
}

static bool counter_read(const char *owner, const json_t *all, const struct counter *c,
                         struct metadata *d)
{
    const json_t *value = json_object_get(all, c->name);
    char *place = (char *)d + c->offset;
    if (c->type == FLAG && json_is_boolean(value)) {
        *(bool *)place = json_is_true(value);
        return true;
    }
    if ((c->type == WHOLE || c->type == SMALL) && json_is_integer(value))
        return counter_read_whole(owner, c, json_integer_value(value), place);
    if ((c->type == REAL && json_is_string(value) &&
         counter_read_real(json_string_value(value), place)) ||
        (c->type == MARK && counter_read_mark(value, place)) ||
        (c->type == MODELS && counter_read_models(value, (void *)place)))
        return true;
    return sb_fail("checkpoint: the %s's \"%s\" is missing or malformed", owner, c->name);
}

bool counters_read(const char *owner, const json_t *all, const struct counter *counters,
                   struct metadata *d)
{
    for (const struct counter *c = counters; all && c->name; c++)
        if (!counter_read(owner, all, c, d))
            return false;
    return true;
}
