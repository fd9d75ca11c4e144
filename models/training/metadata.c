#include "models/training/metadata.h"
#include "models/description_parts.h"
#include "models/text/vocabulary_json.h"
#include "nn/fingerprint.h"
#include "tensor/buffer.h"
#include "tensor/failure.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 3, MOST_VALUES = 1000, MOST_LABELS = 1 << 20 };

/* ---- counters ---- */

/* Doubles and fingerprints are hexadecimal texts, exact to the bit. */
#define ROW(member) FIELD(struct metadata, member)
#define MARK(member) .type = FIELD_MARK, .at = offsetof(struct metadata, member)

static const struct field state_fields[] = {
    {"steps", ROW(state.steps)},
    {"skipped_in_a_row", ROW(state.skipped_in_a_row)},
    {"average_updates", ROW(state.average_updates)},
    {"random_position", ROW(state.random_position)},
    {"epoch", ROW(state.data.epoch)},
    {"batch", ROW(state.data.batch)},
    {"evaluations", ROW(progress.evaluations)},
    {"best_error", ROW(progress.best.error)},
    {"best_loss", ROW(progress.best.loss)},
    {"best_step", ROW(progress.best_step)},
    {"waited", ROW(progress.waited)},
    {"data_hash", ROW(progress.data_hash)},
    {"held_hash", ROW(progress.held_hash)},
    {"source_hash", ROW(progress.source_hash)},
    {"best_fingerprint", MARK(progress.best_fingerprint)},
    {"best_unit_error", ROW(progress.best.unit_error)},
    {"best_bleu", ROW(progress.best.bleu)},
    {"finished", ROW(progress.finished)},
    {"kept", .type = FIELD_OTHER, .at = offsetof(struct metadata, progress.kept)},
    {0}};

static const struct field best_fields[] = {
    {"step", ROW(best.step)}, {"data_hash", ROW(best.data_hash)}, {0}};

static const struct field base_fields[] = {
    {"fingerprint", MARK(base)}, {"adapters", ROW(adapters)}, {0}};
#undef ROW
#undef MARK

static json_t *kept_to_json(const struct kept *kept)
{
    json_t *all = json_object();
    bool ok = true;
    char step[24];
    for (int i = 0; ok && i < kept->count; i++) {
        snprintf(step, sizeof step, "%lld", (long long)kept->model[i].step);
        json_t *mark = json_string(fingerprint_text(kept->model[i].fingerprint).text);
        ok = json_object_set_new(all, step, mark) == 0;
    }
    return json_if(ok, all);
}

static json_t *counter_real_to_json(double real)
{
    char text[40];
    snprintf(text, sizeof text, "%a", real);
    return json_string(text);
}

static json_t *counter_to_json(const struct field *f, const struct metadata *d)
{
    const void *from = (const char *)d + f->at;
    switch (f->type) {
    case FIELD_FLAG:
        return json_boolean(*(const bool *)from);
    case FIELD_MARK:
        return json_string(fingerprint_text(*(const uint64_t *)from).text);
    case FIELD_NUMBER:
        return counter_real_to_json(*(const double *)from);
    case FIELD_OTHER:
        return kept_to_json(from);
    default:
        return json_integer(*(const int64_t *)from);
    }
}

/* Adds an object of counters if there are any. */
static bool counters_write(json_t *json, bool any, const char *name, const struct field *rows,
                           const struct metadata *d)
{
    json_t *all = any ? json_object() : NULL;
    bool ok = !any || json_object_set_new(json, name, all) == 0;
    for (const struct field *f = rows; any && ok && f->name; f++)
        ok = json_object_set_new(all, f->name, counter_to_json(f, d)) == 0;
    return ok;
}

static bool counter_read_whole(const char *owner, const struct field *f, int64_t whole, void *to)
{
    if (whole < 0)
        return sb_fail("checkpoint: the %s's \"%s\" is %lld; it must be in 0..%lld", owner, f->name,
                       (long long)whole, (long long)INT64_MAX);
    *(int64_t *)to = whole;
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
static bool kept_read(const json_t *all, struct kept *kept)
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

static bool counter_read(const char *owner, const struct field *f, struct metadata *d,
                         const json_t *value)
{
    void *to = (char *)d + f->at;
    const bool whole = f->type == FIELD_COUNT || f->type == FIELD_SEED;
    if (whole && json_is_integer(value))
        return counter_read_whole(owner, f, json_integer_value(value), to);
    const bool ok = whole                    ? false
                    : f->type == FIELD_OTHER ? kept_read(value, to)
                    : f->type == FIELD_FLAG  ? counter_read_flag(value, to)
                    : f->type == FIELD_MARK  ? counter_read_mark(value, to)
                                             : counter_read_real(value, to);
    return ok || sb_fail("checkpoint: the %s's \"%s\" is missing or malformed", owner, f->name);
}

/* Reads those of an object, or none where it is NULL. */
static bool counters_read(const char *owner, const struct field *rows, struct metadata *d,
                          const json_t *all)
{
    for (const struct field *f = rows; all && f->name; f++) {
        if (!counter_read(owner, f, d, json_object_get(all, f->name)))
            return false;
    }
    return true;
}

/* ---- writing ---- */

static json_t *settings_to_json(const sb_description *d)
{
    json_t *all = json_object();
    bool ok = true;
    for (int64_t i = 0; ok && sb_description_name(d, i); i++)
        ok = json_object_set_new(all, sb_description_name(d, i),
                                 json_string(sb_description_value(d, i))) == 0;
    return json_if(ok, all);
}

/* A vocabulary, or the name of an earlier entry that is the same one. */
static json_t *metadata_vocabulary_or_name(const sb_description *d, int64_t i)
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
    bool ok = true;
    for (int64_t i = 0; ok && (name = description_vocabulary_at(d, i, &vocabulary)); i++)
        ok = json_object_set_new(all, name, metadata_vocabulary_or_name(d, i)) == 0;
    return json_if(ok, all);
}

/* Labels are written if there are any. */
static bool metadata_add_labels(json_t *json, const sb_description *d)
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
              json_object_set_new(json, "kind", json_string(sb_description_kind(d->model))) == 0 &&
              json_object_set_new(json, "vocabularies", vocabularies_to_json(d->model)) == 0 &&
              metadata_add_labels(json, d->model) &&
              json_object_set_new(json, "fingerprint",
                                  json_string(fingerprint_text(d->fingerprint).text)) == 0 &&
              counters_write(json, d->has_base, "base", base_fields, d) &&
              counters_write(json, d->has_best, "best", best_fields, d) &&
              counters_write(json, d->has_state, "state", state_fields, d);
    return json_if(ok, json);
}

static int metadata_append(const char *bytes, size_t size, void *text)
{
    return buffer_add(text, bytes, size) ? 0 : -1;
}

char *metadata_write(const struct metadata *description)
{
    struct buffer buffer = {0};
    json_t *json = to_json(description);
    /* Jansson continues after a failure, and loses a part: buffer_take notices that. */
    const bool ok = json && json_dump_callback(json, metadata_append, &buffer, JSON_COMPACT) == 0;
    json_decref(json);
    char *text = ok ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return text ? text : sb_fail("checkpoint: out of memory for its description");
}

/* ---- reading ---- */

static bool metadata_read_fingerprint(const json_t *value, struct metadata *d)
{
    const char *text = json_string_value(value);
    return (text && fingerprint_parse(text, &d->fingerprint)) ||
           sb_fail("checkpoint: its fingerprint is missing or malformed; it must be 16 hexadecimal "
                   "digits");
}

static bool metadata_read_settings(const json_t *all, sb_description *d)
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

static bool metadata_add_vocabulary(sb_description *d, const char *name, const json_t *value)
{
    sb_vocabulary *vocabulary =
        json_is_string(value)
            ? sb_vocabulary_retain(sb_description_vocabulary(d, json_string_value(value)))
            : vocabulary_from_json(value);
    const bool ok = vocabulary && sb_description_add_vocabulary(d, name, vocabulary);
    sb_vocabulary_release(vocabulary);
    return ok;
}

static bool metadata_read_vocabularies(const json_t *json, sb_description *d)
{
    const json_t *all = json_object_get(json, "vocabularies");
    const char *key;
    json_t *value;
    if (!json_is_object(all))
        return sb_fail("checkpoint: its vocabularies are missing or malformed");
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        if (!metadata_add_vocabulary(d, key, value))
            return false;
    }
    return true;
}

static bool metadata_read_labels(const json_t *all, sb_description *d)
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

static bool metadata_take_model(const json_t *json, struct metadata *d)
{
    const json_t *kind = json_object_get(json, "kind");
    if (!json_is_string(kind) || json_string_length(kind) > 100)
        return sb_fail("checkpoint: its kind is missing or malformed");
    d->model = sb_description_new(json_string_value(kind));
    return d->model && metadata_read_settings(json_object_get(json, "settings"), d->model) &&
           metadata_read_vocabularies(json, d->model) &&
           metadata_read_labels(json_object_get(json, "labels"), d->model);
}

static bool metadata_check_format(const json_t *format)
{
    const long long number = json_integer_value(format);
    if (!json_is_integer(format))
        return sb_fail("checkpoint: its format is missing or malformed");
    return number == FORMAT ||
           sb_fail("checkpoint: its format is %lld, expected %d; %s", number, FORMAT,
                   number < FORMAT ? "train the model anew with this version"
                                   : "read it with the version of softback that wrote it");
}

static bool metadata_read_json(const json_t *json, struct metadata *d)
{
    const json_t *format = json_object_get(json, "format"), *task = json_object_get(json, "task");
    if (!metadata_check_format(format))
        return false;
    if (!json_is_string(task) || json_string_length(task) > 100)
        return sb_fail("checkpoint: its task is missing or malformed");
    d->task = memory_text(json_string_value(task));
    if (!d->task)
        return sb_fail("checkpoint: out of memory");
    const json_t *base = json_object_get(json, "base"), *best = json_object_get(json, "best"),
                 *state = json_object_get(json, "state");
    d->has_base = base != NULL;
    d->has_best = best != NULL;
    d->has_state = state != NULL;
    return metadata_take_model(json, d) &&
           metadata_read_fingerprint(json_object_get(json, "fingerprint"), d) &&
           counters_read("base", base_fields, d, base) &&
           counters_read("best model", best_fields, d, best) &&
           counters_read("state", state_fields, d, state);
}

bool metadata_read(const char *text, struct metadata *d)
{
    struct json json;
    *d = (struct metadata){0};
    bool ok = json_read(&json, "checkpoint", text, strlen(text));
    if (!ok)
        return false;
    ok = metadata_read_json(json.value, d);
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
