#include "models/training/checkpoint_json.h"
#include "models/description_parts.h"
#include "models/text/buffer.h"
#include "models/text/vocabulary_json.h"
#include "models/training/fingerprint.h"
#include "tensor/failure.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, MOST_VALUES = 1000, MOST_LABELS = 1 << 20 };

#define UNNAMED_KIND "seq2seq"

/* Counters by name. Doubles and fingerprints are hexadecimal texts, exact to the bit. */
enum counter_type { REAL, SCORE, WHOLE, SMALL, FLAG, MARK }; /* SCORE: a double, may be missing */

struct counter {
    const char *name;
    enum counter_type type;
    size_t offset;
};

#define AT(member) offsetof(struct metadata, member)

static const struct counter state_counters[] = {
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
    {"best_unit_error", SCORE, AT(progress.best.unit_error)},
    {"best_bleu", SCORE, AT(progress.best.bleu)},
    {"finished", FLAG, AT(progress.finished)},
    {NULL, WHOLE, 0},
};

static const struct counter best_counters[] = {
    {"step", WHOLE, AT(best.step)},
    {"data_hash", WHOLE, AT(best.data_hash)},
    {NULL, WHOLE, 0},
};

static json_t *counter_to_json(const struct metadata *d, const struct counter *c)
{
    const char *place = (const char *)d + c->offset;
    char text[40];
    int64_t whole;
    uint64_t mark;
    double real;
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

static json_t *counters_to_json(const struct metadata *d, const struct counter *counters)
{
    json_t *all = json_object();
    for (const struct counter *c = counters; c->name; c++)
        if (json_object_set_new(all, c->name, counter_to_json(d, c)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

static json_t *settings_to_json(const sb_description *d)
{
    json_t *all = json_object();
    for (int64_t i = 0; sb_description_name(d, i); i++) {
        json_t *value = json_string(sb_description_value(d, i));
        if (json_object_set_new(all, sb_description_name(d, i), value) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* A vocabulary, or the name of an earlier entry that is the same one. */
static json_t *checkpoint_vocabulary_or_name(const sb_description *d, int64_t i)
{
    sb_vocabulary *vocabulary, *earlier;
    description_vocabulary_at(d, i, &vocabulary);
    for (int64_t k = 0; k < i; k++) {
        const char *name = description_vocabulary_at(d, k, &earlier);
        if (earlier == vocabulary)
            return json_string(name);
    }
    return vocabulary_to_json(vocabulary);
}

static json_t *vocabularies_to_json(const sb_description *d)
{
    json_t *all = json_object();
    sb_vocabulary *vocabulary;
    const char *name;
    for (int64_t i = 0; (name = description_vocabulary_at(d, i, &vocabulary)); i++)
        if (json_object_set_new(all, name, checkpoint_vocabulary_or_name(d, i)) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* Whether a model is of the only kind of earlier versions, whose files do not name it. */
static bool checkpoint_is_unnamed(const sb_description *d)
{
    return strcmp(sb_description_kind(d), UNNAMED_KIND) == 0;
}

/* Its vocabularies are members of their own; a joint one occurs once. */
static bool checkpoint_add_unnamed(json_t *json, const sb_description *d)
{
    sb_vocabulary *source = sb_description_vocabulary(d, "source"),
                  *target = source ? sb_description_vocabulary(d, "target") : NULL;
    return target && json_object_set_new(json, "source", vocabulary_to_json(source)) == 0 &&
           (source == target ||
            json_object_set_new(json, "target", vocabulary_to_json(target)) == 0);
}

static bool checkpoint_add_named(json_t *json, const sb_description *d)
{
    return json_object_set_new(json, "kind", json_string(sb_description_kind(d))) == 0 &&
           json_object_set_new(json, "vocabularies", vocabularies_to_json(d)) == 0;
}

/* Labels are written if there are any. */
static bool checkpoint_add_labels(json_t *json, const sb_description *d)
{
    json_t *all = json_array();
    bool ok = all != NULL;
    for (int64_t i = 0; ok && sb_description_label(d, i); i++)
        ok = json_array_append_new(all, json_string(sb_description_label(d, i))) == 0;
    ok = ok && (json_array_size(all) == 0 || json_object_set(json, "labels", all) == 0);
    json_decref(all);
    return ok;
}

static json_t *to_json(const struct metadata *d)
{
    json_t *json = json_object();
    bool ok = json_object_set_new(json, "format", json_integer(FORMAT)) == 0 &&
              json_object_set_new(json, "task", json_string(d->task)) == 0 &&
              json_object_set_new(json, "settings", settings_to_json(d->model)) == 0 &&
              (checkpoint_is_unnamed(d->model) ? checkpoint_add_unnamed
                                               : checkpoint_add_named)(json, d->model) &&
              checkpoint_add_labels(json, d->model) &&
              (!d->has_fingerprint ||
               json_object_set_new(json, "fingerprint",
                                   json_string(fingerprint_text(d->fingerprint).text)) == 0) &&
              (!d->has_best ||
               json_object_set_new(json, "best", counters_to_json(d, best_counters)) == 0) &&
              (!d->has_state ||
               json_object_set_new(json, "state", counters_to_json(d, state_counters)) == 0);
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

struct output {
    struct buffer text;
    bool failed; /* Jansson continues after a failure, which would lose a part */
};

static int checkpoint_append(const char *bytes, size_t size, void *output_)
{
    struct output *output = output_;
    output->failed = output->failed || !buffer_add(&output->text, bytes, size);
    return output->failed ? -1 : 0;
}

char *metadata_write(const struct metadata *description)
{
    struct output output = {0};
    json_t *json = to_json(description);
    bool ok = json && json_dump_callback(json, checkpoint_append, &output, JSON_COMPACT) == 0;
    json_decref(json);
    char *text = ok && !output.failed ? buffer_take(&output.text) : NULL;
    buffer_free(&output.text);
    return text ? text : sb_fail("checkpoint: out of memory for its description");
}

static bool checkpoint_read_whole(const char *owner, const struct counter *c, int64_t whole,
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

/* Files of earlier versions have neither marks nor scores. */
static bool checkpoint_read_score(const json_t *value, void *place)
{
    char *end = NULL;
    const double score = value ? strtod(json_string_value(value), &end) : (double)NAN;
    memcpy(place, &score, sizeof score);
    return !value || (end != json_string_value(value) && *end == '\0');
}

static bool checkpoint_read_mark(const json_t *value, void *place)
{
    uint64_t mark = 0;
    const bool ok =
        !value || (json_is_string(value) && fingerprint_parse(json_string_value(value), &mark));
    memcpy(place, &mark, sizeof mark);
    return ok;
}

static bool checkpoint_read_counter(const char *owner, const json_t *all, const struct counter *c,
                                    struct metadata *d)
{
    const json_t *value = json_object_get(all, c->name);
    char *place = (char *)d + c->offset;
    if (c->type == FLAG && json_is_boolean(value)) {
        *(bool *)place = json_is_true(value);
        return true;
    }
    if ((c->type == WHOLE || c->type == SMALL) && json_is_integer(value))
        return checkpoint_read_whole(owner, c, json_integer_value(value), place);
    if (((c->type == SCORE && !value) || (c->type <= SCORE && json_is_string(value))) &&
        checkpoint_read_score(value, place))
        return true;
    if (c->type == MARK && checkpoint_read_mark(value, place))
        return true;
    return sb_fail("checkpoint: the %s's \"%s\" is missing or malformed", owner, c->name);
}

static bool checkpoint_read_counters(const char *owner, const json_t *all,
                                     const struct counter *counters, struct metadata *d)
{
    for (const struct counter *c = counters; all && c->name; c++)
        if (!checkpoint_read_counter(owner, all, c, d))
            return false;
    return true;
}

static bool checkpoint_read_fingerprint(const json_t *value, struct metadata *d)
{
    const char *text = json_string_value(value);
    d->has_fingerprint = value != NULL;
    return !value || (text && fingerprint_parse(text, &d->fingerprint)) ||
           sb_fail("checkpoint: its fingerprint is malformed; it must be 16 hexadecimal digits");
}

static bool checkpoint_read_settings(const json_t *all, sb_description *d)
{
    const char *key;
    json_t *value;
    if (!json_is_object(all))
        return sb_fail("checkpoint: its settings are missing or malformed");
    if (json_object_size(all) > MOST_VALUES)
        return sb_fail("checkpoint: it has %zu settings; it must have at most %d",
                       json_object_size(all), MOST_VALUES);
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        if (!json_is_string(value))
            return sb_fail("checkpoint: the setting \"%.60s\" is not a text", key);
        if (!sb_description_set(d, key, json_string_value(value)))
            return false;
    }
    return true;
}

static bool checkpoint_add_vocabulary(sb_description *d, const char *name, const json_t *value)
{
    sb_vocabulary *vocabulary =
        json_is_string(value)
            ? sb_vocabulary_retain(sb_description_vocabulary(d, json_string_value(value)))
            : vocabulary_from_json(value);
    const bool ok = vocabulary && sb_description_add_vocabulary(d, name, vocabulary);
    sb_vocabulary_release(vocabulary);
    return ok;
}

static bool checkpoint_read_unnamed(const json_t *json, sb_description *d)
{
    const json_t *target = json_object_get(json, "target");
    return checkpoint_add_vocabulary(d, "source", json_object_get(json, "source")) &&
           (target ? checkpoint_add_vocabulary(d, "target", target)
                   : sb_description_add_vocabulary(d, "target",
                                                   sb_description_vocabulary(d, "source")));
}

static bool checkpoint_read_named(const json_t *json, sb_description *d)
{
    const json_t *all = json_object_get(json, "vocabularies");
    const char *key;
    json_t *value;
    if (!json_is_object(all))
        return sb_fail("checkpoint: its vocabularies are missing or malformed");
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        if (!checkpoint_add_vocabulary(d, key, value))
            return false;
    }
    return true;
}

static bool checkpoint_read_labels(const json_t *all, sb_description *d)
{
    if (all && (!json_is_array(all) || json_array_size(all) > MOST_LABELS))
        return sb_fail("checkpoint: its labels are malformed, or more than %d", MOST_LABELS);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *label = json_string_value(json_array_get(all, i));
        if (!label)
            return sb_fail("checkpoint: label %zu is not a text", i);
        if (!sb_description_add_label(d, label))
            return false;
    }
    return true;
}

static bool checkpoint_take_model(const json_t *json, struct metadata *d)
{
    const json_t *kind = json_object_get(json, "kind");
    if (kind && (!json_is_string(kind) || json_string_length(kind) > 100))
        return sb_fail("checkpoint: its kind is malformed");
    d->model = sb_description_new(kind ? json_string_value(kind) : UNNAMED_KIND);
    return d->model && checkpoint_read_settings(json_object_get(json, "settings"), d->model) &&
           (checkpoint_is_unnamed(d->model) ? checkpoint_read_unnamed
                                            : checkpoint_read_named)(json, d->model) &&
           checkpoint_read_labels(json_object_get(json, "labels"), d->model);
}

static bool checkpoint_read(const json_t *json, struct metadata *d)
{
    const json_t *format = json_object_get(json, "format"), *task = json_object_get(json, "task");
    if (!json_is_integer(format))
        return sb_fail("checkpoint: its format is missing or malformed");
    if (json_integer_value(format) != FORMAT)
        return sb_fail("checkpoint: its format is %lld; this version reads only %d",
                       (long long)json_integer_value(format), FORMAT);
    if (!json_is_string(task) || json_string_length(task) > 100)
        return sb_fail("checkpoint: its task is missing or malformed");
    d->task = memory_text(json_string_value(task));
    if (!d->task)
        return sb_fail("checkpoint: out of memory");
    const json_t *best = json_object_get(json, "best"), *state = json_object_get(json, "state");
    d->has_best = best != NULL;
    d->has_state = state != NULL;
    return checkpoint_take_model(json, d) &&
           checkpoint_read_fingerprint(json_object_get(json, "fingerprint"), d) &&
           checkpoint_read_counters("best model", best, best_counters, d) &&
           checkpoint_read_counters("state", state, state_counters, d);
}

bool metadata_read(const char *text, struct metadata *d)
{
    *d = (struct metadata){0};
    struct json json;
    if (!json_read(&json, "checkpoint", text, strlen(text)))
        return false;
    bool ok = checkpoint_read(json.value, d);
    json_free(&json);
    if (!ok)
        metadata_free(d);
    return ok;
}

void metadata_free(struct metadata *d)
{
    memory_free(d->task);
    sb_description_free(d->model);
    *d = (struct metadata){0};
}
