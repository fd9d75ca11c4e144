#include "models/training/metadata.h"
#include "models/description_parts.h"
#include "models/text/buffer.h"
#include "models/text/vocabulary_json.h"
#include "models/training/metadata_counters.h"
#include "nn/fingerprint.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 3, MOST_VALUES = 1000, MOST_LABELS = 1 << 20 };

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

/* Counters are written if there are any. */
static bool checkpoint_add_counters(json_t *json, bool any, const char *name,
                                    const struct counters *counters)
{
    return !any || json_object_set_new(json, name, counters_to_json(counters)) == 0;
}

static json_t *to_json(const struct metadata *d)
{
    struct metadata copy = *d; /* not const, as counters can be written to */
    const struct counters base = counters_of_base(&copy), best = counters_of_best(&copy),
                          state = counters_of_state(&copy);
    json_t *json = json_object();
    bool ok = json_object_set_new(json, "format", json_integer(FORMAT)) == 0 &&
              json_object_set_new(json, "task", json_string(d->task)) == 0 &&
              json_object_set_new(json, "settings", settings_to_json(d->model)) == 0 &&
              json_object_set_new(json, "kind", json_string(sb_description_kind(d->model))) == 0 &&
              json_object_set_new(json, "vocabularies", vocabularies_to_json(d->model)) == 0 &&
              checkpoint_add_labels(json, d->model) &&
              json_object_set_new(json, "fingerprint",
                                  json_string(fingerprint_text(d->fingerprint).text)) == 0 &&
              checkpoint_add_counters(json, d->has_base, "base", &base) &&
              checkpoint_add_counters(json, d->has_best, "best", &best) &&
              checkpoint_add_counters(json, d->has_state, "state", &state);
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

static bool checkpoint_read_fingerprint(const json_t *value, struct metadata *d)
{
    const char *text = json_string_value(value);
    return (text && fingerprint_parse(text, &d->fingerprint)) ||
           sb_fail("checkpoint: its fingerprint is missing or malformed; it must be 16 hexadecimal "
                   "digits");
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

static bool checkpoint_read_vocabularies(const json_t *json, sb_description *d)
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
    if (!json_is_string(kind) || json_string_length(kind) > 100)
        return sb_fail("checkpoint: its kind is missing or malformed");
    d->model = sb_description_new(json_string_value(kind));
    return d->model && checkpoint_read_settings(json_object_get(json, "settings"), d->model) &&
           checkpoint_read_vocabularies(json, d->model) &&
           checkpoint_read_labels(json_object_get(json, "labels"), d->model);
}

static bool checkpoint_check_format(const json_t *format)
{
    const long long number = json_integer_value(format);
    if (!json_is_integer(format))
        return sb_fail("checkpoint: its format is missing or malformed");
    return number == FORMAT ||
           sb_fail("checkpoint: its format is %lld, expected %d; %s", number, FORMAT,
                   number < FORMAT ? "train the model anew with this version"
                                   : "read it with the version of softback that wrote it");
}

static bool checkpoint_read(const json_t *json, struct metadata *d)
{
    const json_t *format = json_object_get(json, "format"), *task = json_object_get(json, "task");
    if (!checkpoint_check_format(format))
        return false;
    if (!json_is_string(task) || json_string_length(task) > 100)
        return sb_fail("checkpoint: its task is missing or malformed");
    d->task = memory_text(json_string_value(task));
    if (!d->task)
        return sb_fail("checkpoint: out of memory");
    const json_t *base = json_object_get(json, "base"), *best = json_object_get(json, "best"),
                 *state = json_object_get(json, "state");
    const struct counters of_base = counters_of_base(d), of_best = counters_of_best(d),
                          of_state = counters_of_state(d);
    d->has_base = base != NULL;
    d->has_best = best != NULL;
    d->has_state = state != NULL;
    return checkpoint_take_model(json, d) &&
           checkpoint_read_fingerprint(json_object_get(json, "fingerprint"), d) &&
           counters_read(&of_base, base) && counters_read(&of_best, best) &&
           counters_read(&of_state, state);
}

bool metadata_read(const char *text, struct metadata *d)
{
    struct json json;
    *d = (struct metadata){0};
    bool ok = json_read(&json, "checkpoint", text, strlen(text));
    if (!ok)
        return false;
    ok = checkpoint_read(json.value, d);
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
