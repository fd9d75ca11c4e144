#include "models/text/vocabulary.h"
#include "models/text/symbols.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

static const char *const special_symbols[SB_SPECIAL_SYMBOLS] = {"<padding>", "<begin>", "<end>",
                                                                "<unknown>"};
static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

sb_vocabulary *vocabulary_empty(sb_units units)
{
    sb_vocabulary *v = memory_new(sizeof *v);
    if (v) {
        atomic_init(&v->refs, 1);
        v->units = units;
        v->first = SB_SPECIAL_SYMBOLS;
        for (int32_t i = 0; i < SB_SPECIAL_SYMBOLS; i++)
            v->special[i] = i;
    }
    return v;
}

static bool vocabulary_check_ids(int64_t size, int32_t padding, int32_t begin, int32_t end)
{
    if (size < 1 || size > 1 << 24)
        return sb_fail("vocabulary_of_ids: size is %lld, not in 1..%d", (long long)size, 1 << 24);
    if (begin < 0 || begin >= size || padding < -1 || padding >= size || end < -1 || end >= size)
        return sb_fail("vocabulary_of_ids: padding is %d, begin %d, end %d; each must be below the "
                       "size, %lld, and not negative; padding and end may be -1 for none",
                       padding, begin, end, (long long)size);
    return true;
}

sb_vocabulary *sb_vocabulary_of_ids(int64_t size, int32_t padding, int32_t begin, int32_t end)
{
    sb_vocabulary *v = NULL;
    if (!vocabulary_check_ids(size, padding, begin, end))
        return NULL;
    bool ok = (v = vocabulary_empty(SB_UNITS_IDS)) != NULL;
    for (int64_t i = 0; ok && i < size; i++) {
        char text[16];
        const int length = snprintf(text, sizeof text, "%lld", (long long)i);
        ok = table_add(&v->symbols, text, (size_t)length) >= 0;
    }
    if (!ok) {
        sb_vocabulary_release(v);
        return sb_fail("vocabulary_of_ids: out of memory");
    }
    v->first = 0;
    v->special[SB_SYMBOL_PADDING] = padding;
    v->special[SB_SYMBOL_BEGIN] = begin;
    v->special[SB_SYMBOL_END] = end;
    v->special[SB_SYMBOL_UNKNOWN] = -1;
    return v;
}

sb_vocabulary *sb_vocabulary_retain(sb_vocabulary *vocabulary)
{
    if (vocabulary)
        atomic_fetch_add(&vocabulary->refs, 1);
    return vocabulary;
}

void sb_vocabulary_release(sb_vocabulary *vocabulary)
{
    if (!vocabulary || atomic_fetch_sub(&vocabulary->refs, 1) > 1)
        return;
    table_free(&vocabulary->symbols);
    table_free(&vocabulary->merges);
    memory_free(vocabulary);
}

int64_t sb_vocabulary_size(const sb_vocabulary *vocabulary)
{
    return vocabulary ? vocabulary->first + vocabulary->symbols.count : 0;
}

int64_t sb_vocabulary_symbols(const sb_vocabulary *vocabulary)
{
    return vocabulary ? vocabulary->symbols.count : 0;
}

sb_units sb_vocabulary_units(const sb_vocabulary *vocabulary)
{
    return vocabulary ? vocabulary->units : SB_UNITS_AUTO;
}

int32_t sb_vocabulary_special(const sb_vocabulary *vocabulary, int symbol)
{
    const bool has = vocabulary && symbol >= 0 && symbol < SB_SPECIAL_SYMBOLS;
    return has ? vocabulary->special[symbol] : -1;
}

const char *sb_vocabulary_symbol(const sb_vocabulary *vocabulary, int32_t id)
{
    if (!vocabulary)
        return fail_null("vocabulary_symbol", "vocabulary");
    if (id < 0 || id >= sb_vocabulary_size(vocabulary))
        return sb_fail("vocabulary_symbol: there is no id %d; ids are below %lld", id,
                       (long long)sb_vocabulary_size(vocabulary));
    return id < vocabulary->first ? special_symbols[id]
                                  : table_key(&vocabulary->symbols, id - vocabulary->first);
}

static int32_t vocabulary_id_of(const sb_vocabulary *v, const char *text, size_t size)
{
    int64_t index = table_find(&v->symbols, text, size);
    return index < 0 ? -1 : (int32_t)index + v->first;
}

int32_t sb_vocabulary_id(const sb_vocabulary *vocabulary, const char *symbol)
{
    return vocabulary && symbol ? vocabulary_id_of(vocabulary, symbol, strlen(symbol)) : -1;
}

/* Writes the ids of the units of a text, and returns their number; with `ids` NULL only that. */
static int64_t vocabulary_encode_units(const sb_vocabulary *v, const char *text, size_t size,
                                       int32_t *ids, sb_unknown *unknown)
{
    sb_units units = v->units == SB_UNITS_BPE ? SB_UNITS_CHARACTERS : v->units;
    int64_t count = 0;
    struct unit unit;
    for (size_t at = 0; unit_next(units, text, size, &at, &unit); count++) {
        if (!ids)
            continue;
        ids[count] = units == SB_UNITS_BYTES ? SB_SPECIAL_SYMBOLS + (unsigned char)unit.text[0]
                                             : vocabulary_id_of(v, unit.text, unit.size);
        if (ids[count] >= 0)
            continue;
        ids[count] = SB_SYMBOL_UNKNOWN;
        if (unknown->count++ == 0) {
            unknown->first = (size_t)(unit.text - text);
            unknown->first_size = unit.size;
        }
    }
    return count;
}

/* The ids of a text's characters after a leading space, then merged. */
static int64_t vocabulary_encode_byte_pairs(const sb_vocabulary *v, const char *text, size_t size,
                                            int32_t *ids, sb_unknown *unknown)
{
    if (size == 0)
        return 0;
    ids[0] = vocabulary_id_of(v, " ", 1);
    return byte_pairs_apply(v, ids, 1 + vocabulary_encode_units(v, text, size, ids + 1, unknown));
}

static void *vocabulary_fail_id(const sb_vocabulary *v, const char *unit, size_t size)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", size < sizeof text ? (int)size : (int)sizeof text, unit);
    return sb_fail("vocabulary_encode: %s is no id; a text of this vocabulary has numbers below "
                   "%lld between spaces",
                   utf8_quote(text).text, (long long)sb_vocabulary_size(v));
}

int32_t *sb_vocabulary_encode(const sb_vocabulary *vocabulary, const char *text, int64_t *count,
                              sb_unknown *unknown)
{
    if (!vocabulary || !count)
        return fail_null("vocabulary_encode", vocabulary ? "count" : "vocabulary");
    size_t size;
    if (!text_check("vocabulary_encode", text, &size))
        return NULL;
    sb_unknown met = {0};
    int64_t room = vocabulary_encode_units(vocabulary, text, size, NULL, &met) + 1;
    int32_t *ids = memory_new((size_t)room * sizeof *ids);
    int64_t made = !ids ? -1
                   : vocabulary->units == SB_UNITS_BPE
                       ? vocabulary_encode_byte_pairs(vocabulary, text, size, ids, &met)
                       : vocabulary_encode_units(vocabulary, text, size, ids, &met);
    if (made < 0) {
        memory_free(ids);
        return sb_fail("vocabulary_encode: out of memory");
    }
    if (vocabulary->units == SB_UNITS_IDS && met.count > 0) {
        memory_free(ids);
        return vocabulary_fail_id(vocabulary, text + met.first, met.first_size);
    }
    if (unknown)
        *unknown = met;
    *count = made;
    return ids;
}

static bool vocabulary_is_spaced(const sb_vocabulary *v)
{
    return v->units == SB_UNITS_WORDS || v->units == SB_UNITS_IDS;
}

/* Appends the text of one id, which is not padding, begin or end. */
static bool vocabulary_decode_symbol(const sb_vocabulary *v, int32_t id, struct buffer *text)
{
    if (id == v->special[SB_SYMBOL_UNKNOWN])
        return buffer_add_text(text, replacement);
    int64_t index = id - v->first;
    if (v->units == SB_UNITS_BYTES)
        return buffer_add(text, &(char){(char)index}, 1);
    return buffer_add(text, table_key(&v->symbols, index), table_key_size(&v->symbols, index));
}

static bool vocabulary_decode_ids(const sb_vocabulary *v, const int32_t *ids, int64_t count,
                                  struct buffer *text)
{
    bool first = true;
    for (int64_t i = 0; i < count && ids[i] != v->special[SB_SYMBOL_END]; i++) {
        if (ids[i] < 0 || ids[i] >= sb_vocabulary_size(v))
            return sb_fail("vocabulary_decode: id %d at position %lld: ids are below %lld", ids[i],
                           (long long)i, (long long)sb_vocabulary_size(v));
        if (ids[i] < v->first && ids[i] != SB_SYMBOL_UNKNOWN)
            continue;
        bool joined = first || !vocabulary_is_spaced(v) || buffer_add(text, " ", 1);
        if (!joined || !vocabulary_decode_symbol(v, ids[i], text))
            return sb_fail("vocabulary_decode: out of memory");
        first = false;
    }
    return true;
}

/* A copy in which each byte that is not part of a character, or is NUL, is U+FFFD. */
static char *vocabulary_repaired(const char *bytes, size_t size)
{
    struct buffer text = {0};
    bool ok = true;
    for (size_t at = 0, start = 0; ok && at < size; start = at) {
        if (utf8_next(bytes, size, &at) > 0) {
            ok = buffer_add(&text, bytes + start, at - start);
        } else {
            at = start + 1;
            ok = buffer_add_text(&text, replacement);
        }
    }
    if (ok)
        return buffer_take(&text);
    buffer_free(&text);
    return NULL;
}

char *sb_vocabulary_decode(const sb_vocabulary *vocabulary, const int32_t *ids, int64_t count)
{
    if (!vocabulary || (!ids && count > 0))
        return fail_null("vocabulary_decode", vocabulary ? "ids" : "vocabulary");
    struct buffer text = {0};
    if (!vocabulary_decode_ids(vocabulary, ids, count, &text)) {
        buffer_free(&text);
        return NULL;
    }
    bool spaced = vocabulary->units == SB_UNITS_BPE && text.size > 0 && text.bytes[0] == ' ';
    char *result = spaced ? vocabulary_repaired(text.bytes + 1, text.size - 1)
                          : vocabulary_repaired(text.bytes, text.size);
    buffer_free(&text);
    return result ? result : sb_fail("vocabulary_decode: out of memory");
}
