#include "models/training/metadata_counters.h"
#include "nn/fingerprint.h"
#include "tensor/error.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counters counters_of_state(struct metadata *d)
{
    struct progress *p = &d->progress;
    sb_trainer_state *s = &d->state;
    return (struct counters){"state",
                             {{"steps", .whole = &s->steps},
                              {"skipped_in_a_row", .whole = &s->skipped_in_a_row},
                              {"average_updates", .whole = &s->average_updates},
                              {"random_position", .natural = &s->random_position},
                              {"epoch", .whole = &s->data.epoch},
                              {"batch", .whole = &s->data.batch},
                              {"evaluations", .whole = &p->evaluations},
                              {"best_error", .real = &p->best.error},
                              {"best_loss", .real = &p->best.loss},
                              {"best_step", .whole = &p->best_step},
                              {"waited", .whole = &p->waited},
                              {"data_hash", .natural = &p->data_hash},
                              {"source_hash", .natural = &p->source_hash},
                              {"best_fingerprint", .mark = &p->best_fingerprint},
                              {"best_unit_error", .real = &p->best.unit_error},
                              {"best_bleu", .real = &p->best.bleu},
                              {"finished", .flag = &p->finished},
                              {"kept", .kept = &p->kept}}};
}

struct counters counters_of_best(struct metadata *d)
{
    return (struct counters){
        "best model",
        {{"step", .whole = &d->best.step}, {"data_hash", .natural = &d->best.data_hash}}};
}

struct counters counters_of_base(struct metadata *d)
{
    return (struct counters){
        "base", {{"fingerprint", .mark = &d->base}, {"adapters", .flag = &d->adapters}}};
}

/* ---- writing ---- */

static json_t *counter_kept_to_json(const struct kept *kept)
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

static json_t *counter_real_to_json(double real)
{
    char text[40];
    snprintf(text, sizeof text, "%a", real);
    return json_string(text);
}

static json_t *counter_to_json(const struct counter *c)
{
    return c->kept      ? counter_kept_to_json(c->kept)
           : c->flag    ? json_boolean(*c->flag)
           : c->mark    ? json_string(fingerprint_text(*c->mark).text)
           : c->real    ? counter_real_to_json(*c->real)
           : c->natural ? json_integer((json_int_t)*c->natural)
                        : json_integer(*c->whole);
}

json_t *counters_to_json(const struct counters *counters)
{
    json_t *all = json_object();
    for (const struct counter *c = counters->at; c->name; c++)
        if (json_object_set_new(all, c->name, counter_to_json(c)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* ---- reading ---- */

static bool counter_read_whole(const char *owner, const struct counter *c, int64_t whole)
{
    if (whole < 0)
        return sb_fail("checkpoint: the %s's \"%s\" is %lld; it must be in 0..%lld", owner, c->name,
                       (long long)whole, (long long)INT64_MAX);
    if (c->natural)
        *c->natural = (uint64_t)whole;
    else
        *c->whole = whole;
    return true;
}

static bool counter_read_real(const json_t *value, double *real)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text)
        *real = strtod(text, &end);
    return text && end != text && *end == '\0';
}

static bool counter_read_mark(const json_t *value, uint64_t *mark)
{
    return json_is_string(value) && fingerprint_parse(json_string_value(value), mark);
}

static bool counter_read_flag(const json_t *value, bool *flag)
{
    *flag = json_is_true(value);
    return json_is_boolean(value);
}

/* Steps rise, and are written without zeros in front. */
static bool counter_read_kept(const json_t *all, struct kept *kept)
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
        if (strcmp(key, same) != 0 || step <= before ||
            !counter_read_mark(value, &kept->model[kept->count].fingerprint))
            return false;
        kept->model[kept->count++].step = step;
    }
    return true;
}

static bool counter_read(const char *owner, const struct counter *c, const json_t *value)
{
    const bool is_whole = c->whole || c->natural;
    if (is_whole && json_is_integer(value))
        return counter_read_whole(owner, c, json_integer_value(value));
    const bool ok = is_whole  ? false
                    : c->kept ? counter_read_kept(value, c->kept)
                    : c->flag ? counter_read_flag(value, c->flag)
                    : c->mark ? counter_read_mark(value, c->mark)
                              : counter_read_real(value, c->real);
    return ok || sb_fail("checkpoint: the %s's \"%s\" is missing or malformed", owner, c->name);
}

bool counters_read(const struct counters *counters, const json_t *all)
{
    for (const struct counter *c = counters->at; all && c->name; c++)
        if (!counter_read(counters->owner, c, json_object_get(all, c->name)))
            return false;
    return true;
}
