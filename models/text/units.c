#include "models/text/units.h"
#include "models/text/table.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

enum { MANY_WORDS = 1000, LONG_TEXT = 64, LONG_WORDS = 8, TEXT_LIMIT = 1 << 30 };

static const struct {
    const char *name, *description;
} unit_names[SB_UNITS] = {
    {"auto", "auto"},
    {"characters", "characters"},
    {"bytes", "bytes"},
    {"words", "words (cut at spaces)"},
    {"bpe", "bpe (byte-pair merges)"},
    {"ids", "ids (numbers of another vocabulary)"},
};

const char *sb_units_name(sb_units units)
{
    return (unsigned)units < SB_UNITS ? unit_names[units].name : "(no units)";
}

const char *sb_units_description(sb_units units)
{
    return (unsigned)units < SB_UNITS ? unit_names[units].description : "(no units)";
}

bool units_named(const char *name, sb_units *units)
{
    int i = 0;
    while (i < SB_UNITS && strcmp(name, unit_names[i].name) != 0)
        i++;
    *units = i < SB_UNITS ? (sb_units)i : SB_UNITS_AUTO;
    return i < SB_UNITS;
}

bool sb_units_find(const char *name, sb_units *units)
{
    if (!name || !units)
        return fail_null("units_find", name ? "units" : "name");
    return units_named(name, units) ||
           sb_fail("units_find: %s is none of auto, characters, bytes, words, bpe, ids",
                   utf8_quote(name).text);
}

bool text_check(const char *who, const char *text, size_t *size)
{
    *size = text ? strlen(text) : 0;
    if (!text)
        return fail_null(who, "text");
    if (*size > TEXT_LIMIT)
        return sb_fail("%s: the text is longer than 1 GiB", who);
    size_t bad = utf8_valid_size(text, *size);
    if (bad < *size)
        return sb_fail("%s: byte %zu of the text (0x%02x) is not UTF-8", who, bad + 1,
                       (unsigned char)text[bad]);
    return true;
}

static const char white[] = " \n\r\t";

bool unit_next(sb_units units, const char *text, size_t size, size_t *at, struct unit *unit)
{
    size_t start = *at, end = start + 1;
    if (units == SB_UNITS_IDS) {
        start += strspn(text + start, white);
        end = start + strcspn(text + start, white);
        if (start == end || start >= size)
            return false;
        *at = end;
    } else if (units == SB_UNITS_WORDS) {
        if (start > size || size == 0)
            return false;
        const char *space = memchr(text + start, ' ', size - start);
        end = space ? (size_t)(space - text) : size;
        *at = end + 1; /* after the space; size + 1 marks the end, as a last word may be empty */
    } else {
        if (start >= size)
            return false;
        if (units == SB_UNITS_CHARACTERS) {
            end = start;
            if (utf8_next(text, size, &end) < 0)
                end = start + 1;
        }
        *at = end;
    }
    *unit = (struct unit){text + start, end - start};
    return true;
}

/* The statistics that decide the choice of units. */
struct statistics {
    struct table words;
    int64_t uses[MANY_WORDS]; /* of the first thousand words */
    int64_t tokens, empty, characters;
};

static bool units_count_text(struct statistics *statistics, const char *text, size_t size)
{
    struct unit unit;
    for (size_t at = 0; unit_next(SB_UNITS_WORDS, text, size, &at, &unit);) {
        statistics->tokens++;
        statistics->empty += unit.size == 0;
        if (statistics->words.count > MANY_WORDS)
            continue; /* above the limit, so which words does not matter */
        int64_t word = table_add(&statistics->words, unit.text, unit.size);
        if (word < 0)
            return sb_fail("units_detect: out of memory");
        if (word < MANY_WORDS)
            statistics->uses[word]++;
    }
    for (size_t at = 0; unit_next(SB_UNITS_CHARACTERS, text, size, &at, &unit);)
        statistics->characters++;
    return true;
}

static bool units_closed_set_of_words(const struct statistics *statistics, int64_t texts)
{
    if (statistics->tokens < 2 * texts || statistics->words.count > MANY_WORDS)
        return false;
    int64_t once = 0;
    for (int64_t i = 0; i < statistics->words.count; i++)
        once += statistics->uses[i] == 1;
    return 100 * (once + statistics->empty) < statistics->tokens;
}

bool sb_units_detect(const char *const *texts, int64_t count, sb_units *units)
{
    if (!texts || !units)
        return fail_null("units_detect", texts ? "units" : "texts");
    if (!check_at_least("units_detect", "count", count, 1))
        return false;
    struct statistics *statistics = memory_new(sizeof *statistics);
    if (!statistics)
        return sb_fail("units_detect: out of memory");
    bool ok = true;
    for (int64_t i = 0; ok && i < count; i++) {
        size_t size;
        ok = text_check("units_detect", texts[i], &size) &&
             units_count_text(statistics, texts[i], size);
    }
    if (ok) {
        bool sentences =
            statistics->characters > LONG_TEXT * count && statistics->tokens >= LONG_WORDS * count;
        *units = units_closed_set_of_words(statistics, count) ? SB_UNITS_WORDS
                 : sentences                                  ? SB_UNITS_BPE
                                                              : SB_UNITS_CHARACTERS;
    }
    table_free(&statistics->words);
    memory_free(statistics);
    return ok;
}
