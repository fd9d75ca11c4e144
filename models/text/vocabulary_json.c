#include "models/text/vocabulary_json.h"
#include "models/text/symbols.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

static json_t *symbols_to_json(const sb_vocabulary *v)
{
    json_t *symbols = json_array();
    bool ok = symbols != NULL;
    for (int64_t i = 0; ok && i < v->symbols.count; i++)
        ok = json_array_append_new(symbols, json_stringn(table_key(&v->symbols, i),
                                                         table_key_size(&v->symbols, i))) == 0;
    return json_if(ok, symbols);
}

static json_t *merges_to_json(const sb_vocabulary *v)
{
    json_t *merges = json_array();
    bool ok = merges != NULL;
    for (int64_t i = 0; ok && i < v->merges.count; i++) {
        int32_t ids[2];
        memcpy(ids, table_key(&v->merges, i), sizeof ids);
        ok = json_array_append_new(merges, json_integer(ids[0])) == 0 &&
             json_array_append_new(merges, json_integer(ids[1])) == 0;
    }
    return json_if(ok, merges);
}

/* The special symbols of a vocabulary of ids; -1: none. */
static const char *const special_names[] = {"padding", "begin", "end"};

static bool ids_to_json(const sb_vocabulary *v, json_t *json)
{
    bool ok = json_object_set_new(json, "size", json_integer(sb_vocabulary_size(v))) == 0;
    for (int i = 0; ok && i < 3; i++)
        ok = json_object_set_new(json, special_names[i], json_integer(v->special[i])) == 0;
    return ok;
}

json_t *vocabulary_to_json(const sb_vocabulary *vocabulary)
{
    if (!vocabulary)
        return fail_null("vocabulary_to_json", "vocabulary");
    json_t *json = json_object();
    bool ok =
        json_object_set_new(json, "units", json_string(sb_units_name(vocabulary->units))) == 0;
    if (ok && vocabulary->units == SB_UNITS_IDS)
        ok = ids_to_json(vocabulary, json);
    else if (ok && vocabulary->units != SB_UNITS_BYTES)
        ok = json_object_set_new(json, "symbols", symbols_to_json(vocabulary)) == 0;
    if (ok && vocabulary->units == SB_UNITS_BPE)
        ok = json_object_set_new(json, "merges", merges_to_json(vocabulary)) == 0;
    if (ok)
        return json;
    json_decref(json);
    return sb_fail("vocabulary_to_json: out of memory");
}

static bool vocabulary_out_of_memory(void)
{
    return sb_fail("vocabulary: out of memory");
}

/* Whether a text can be a symbol of these units. */
static bool vocabulary_fits_units(sb_units units, const char *text, size_t size)
{
    size_t at = 0;
    if (units == SB_UNITS_WORDS)
        return !memchr(text, ' ', size);
    return units == SB_UNITS_BPE ? size > 0 : utf8_next(text, size, &at) > 0 && at == size;
}

static bool vocabulary_read_symbols(sb_vocabulary *v, const json_t *symbols)
{
    if (!json_is_array(symbols))
        return sb_fail("vocabulary: \"symbols\" is not an array");
    if (json_array_size(symbols) > INT32_MAX - SB_SPECIAL_SYMBOLS)
        return sb_fail("vocabulary: %zu symbols are more than 2^31", json_array_size(symbols));
    for (size_t i = 0; i < json_array_size(symbols); i++) {
        const json_t *symbol = json_array_get(symbols, i);
        if (!json_is_string(symbol))
            return sb_fail("vocabulary: symbol %zu is not a string", i);
        const char *text = json_string_value(symbol);
        size_t size = json_string_length(symbol);
        if (!utf8_valid(text, size) || memchr(text, '\0', size) ||
            !vocabulary_fits_units(v->units, text, size))
            return sb_fail("vocabulary: symbol %zu, %s, cannot be a symbol of %s", i,
                           utf8_quote(text).text, sb_units_name(v->units));
        int64_t index = table_add(&v->symbols, text, size);
        if (index < 0)
            return vocabulary_out_of_memory();
        if (index < (int64_t)i)
            return sb_fail("vocabulary: symbol %zu, %s, repeats symbol %lld", i,
                           utf8_quote(text).text, (long long)index);
    }
    return true;
}

/* Whether symbol `made` is what the symbols left and right make when they are joined. */
static bool vocabulary_joins(const struct table *symbols, int64_t left, int64_t right, int64_t made)
{
    size_t size = table_key_size(symbols, left), rest = table_key_size(symbols, right);
    const char *text = table_key(symbols, made);
    return table_key_size(symbols, made) == size + rest &&
           memcmp(text, table_key(symbols, left), size) == 0 &&
           memcmp(text + size, table_key(symbols, right), rest) == 0;
}

/* Reads one merge, which makes the symbol of index `made`. */
static bool vocabulary_read_merge(sb_vocabulary *v, const json_t *merges, size_t number,
                                  int64_t made)
{
    int32_t ids[2];
    for (size_t side = 0; side < 2; side++) {
        const json_t *value = json_array_get(merges, 2 * number + side);
        int64_t id = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
        if (id < SB_SPECIAL_SYMBOLS || id >= made + SB_SPECIAL_SYMBOLS)
            return sb_fail("vocabulary: merge %zu has no earlier symbol on its %s", number,
                           side == 0 ? "left" : "right");
        ids[side] = (int32_t)id;
    }
    if (!vocabulary_joins(&v->symbols, ids[0] - SB_SPECIAL_SYMBOLS, ids[1] - SB_SPECIAL_SYMBOLS,
                          made))
        return sb_fail("vocabulary: merge %zu does not make symbol %lld, %s", number,
                       (long long)made, utf8_quote(table_key(&v->symbols, made)).text);
    int64_t index = table_add(&v->merges, ids, sizeof ids);
    return index >= 0 || vocabulary_out_of_memory(); /* merges are distinct, as symbols are */
}

static bool vocabulary_read_merges(sb_vocabulary *v, const json_t *merges)
{
    size_t count = json_array_size(merges) / 2;
    if (!json_is_array(merges) || json_array_size(merges) % 2 != 0)
        return sb_fail("vocabulary: \"merges\" is not an array of pairs");
    if (count > (size_t)v->symbols.count)
        return sb_fail("vocabulary: there are %zu merges, more than the %lld symbols", count,
                       (long long)v->symbols.count);
    int64_t characters = v->symbols.count - (int64_t)count;
    for (int64_t i = 0; i < characters; i++)
        if (!vocabulary_fits_units(SB_UNITS_CHARACTERS, table_key(&v->symbols, i),
                                   table_key_size(&v->symbols, i)))
            return sb_fail("vocabulary: symbol %lld is neither a character nor made by a merge",
                           (long long)i);
    for (size_t i = 0; i < count; i++)
        if (!vocabulary_read_merge(v, merges, i, characters + (int64_t)i))
            return false;
    return table_find(&v->symbols, " ", 1) >= 0 ||
           sb_fail("vocabulary: there is no space among the symbols; bpe needs it");
}

static sb_vocabulary *ids_from_json(const json_t *json)
{
    const json_t *size = json_object_get(json, "size");
    int32_t special[3];
    for (int i = 0; i < 3; i++) {
        const json_t *id = json_object_get(json, special_names[i]);
        if (!json_is_integer(id) || json_integer_value(id) < -1 || json_integer_value(id) > 1 << 24)
            return sb_fail("vocabulary: \"%s\" is no id, and not -1", special_names[i]);
        special[i] = (int32_t)json_integer_value(id);
    }
    return sb_vocabulary_of_ids(json_is_integer(size) ? json_integer_value(size) : 0, special[0],
                                special[1], special[2]);
}

sb_vocabulary *vocabulary_from_json(const json_t *json)
{
    if (!json)
        return fail_null("vocabulary", "json");
    const char *name = json_string_value(json_object_get(json, "units"));
    sb_units units;
    if (!name)
        return sb_fail("vocabulary: \"units\" is not a string");
    if (!units_named(name, &units) || units == SB_UNITS_AUTO)
        return sb_fail(
            "vocabulary: \"units\" is %s; it must be characters, bytes, words, bpe or ids",
            utf8_quote(name).text);
    if (units == SB_UNITS_IDS)
        return ids_from_json(json);
    sb_vocabulary *v = vocabulary_empty(units);
    bool ok = v || vocabulary_out_of_memory();
    if (ok && units == SB_UNITS_BYTES)
        ok = vocabulary_add_bytes(v) || vocabulary_out_of_memory();
    else if (ok)
        ok = vocabulary_read_symbols(v, json_object_get(json, "symbols")) &&
             (units != SB_UNITS_BPE || vocabulary_read_merges(v, json_object_get(json, "merges")));
    if (ok)
        return v;
    sb_vocabulary_release(v);
    return NULL;
}
