/* Vocabularies from training texts. */
#include "models/text/symbols.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BPE_SIZE = 8000 };

/* Different units, and how often each is used. */
struct counts {
    struct table units;
    int64_t *uses;
    int64_t known, room;
};

static bool vocabulary_count_uses(struct counts *counts, const char *text, size_t size,
                                  int64_t uses)
{
    int64_t index = table_add(&counts->units, text, size);
    if (index < 0 || !memory_room(&counts->uses, counts->known, &counts->room, sizeof(int64_t)))
        return false;
    if (index == counts->known)
        counts->uses[counts->known++] = 0;
    counts->uses[index] += uses;
    return true;
}

static void vocabulary_counts_free(struct counts *counts)
{
    table_free(&counts->units);
    memory_free(counts->uses);
}

static bool vocabulary_count_units(struct counts *counts, sb_units units, const char *text,
                                   size_t size, int64_t uses)
{
    struct unit unit;
    for (size_t at = 0; unit_next(units, text, size, &at, &unit);)
        if (!vocabulary_count_uses(counts, unit.text, unit.size, uses))
            return false;
    return true;
}

/*
 * Counts the words of a text, each with the space before it; the first word gets one. A line feed
 * is a word of its own, and so is what follows it, without a space: no symbol goes on over the end
 * of a line.
 */
static bool vocabulary_count_spaced_words(struct counts *counts, const char *text)
{
    size_t size = strcspn(text, " \n");
    char *first = memory_format(" %.*s", (int)size, text);
    bool ok = first && (!*text || vocabulary_count_uses(counts, first, size + 1, 1));
    memory_free(first);
    for (text += size; ok && *text; text += size) {
        size = *text == '\n' ? 1 : 1 + strcspn(text + 1, " \n");
        ok = vocabulary_count_uses(counts, text, size, 1);
    }
    return ok;
}

struct candidate {
    const char *text;
    size_t size;
    int64_t uses;
};

static int vocabulary_by_text(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int vocabulary_by_uses(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->uses != y->uses ? (x->uses < y->uses) - (x->uses > y->uses)
                              : vocabulary_by_text(a, b);
}

/* Adds the most used units, at most `limit`, in the order of their code points. */
static bool vocabulary_add_symbols(sb_vocabulary *v, const struct counts *counts, int64_t limit)
{
    int64_t count = counts->known;
    struct candidate *candidate = memory_new((size_t)(count + 1) * sizeof *candidate);
    if (!candidate)
        return sb_fail("vocabulary_new: out of memory");
    for (int64_t i = 0; i < count; i++) {
        candidate[i] = (struct candidate){table_key(&counts->units, i),
                                          table_key_size(&counts->units, i), counts->uses[i]};
        if (v->units == SB_UNITS_BPE && strcmp(candidate[i].text, " ") == 0)
            candidate[i].uses = INT64_MAX; /* every text begins with it */
    }
    qsort(candidate, (size_t)count, sizeof *candidate, vocabulary_by_uses);
    if (count > limit)
        count = limit;
    qsort(candidate, (size_t)count, sizeof *candidate, vocabulary_by_text);
    bool ok = true;
    for (int64_t i = 0; ok && i < count; i++)
        ok = table_add(&v->symbols, candidate[i].text, candidate[i].size) >= 0;
    memory_free(candidate);
    return ok || sb_fail("vocabulary_new: out of memory");
}

bool vocabulary_add_bytes(sb_vocabulary *vocabulary)
{
    bool ok = true;
    for (int byte = 0; ok && byte < 256; byte++) {
        char text[8];
        int size =
            snprintf(text, sizeof text, byte >= 0x20 && byte < 0x7F ? "%c" : "<0x%02X>", byte);
        ok = table_add(&vocabulary->symbols, text, (size_t)size) >= 0;
    }
    return ok;
}

/* Learns symbols from texts that have been checked. */
static bool learn(sb_vocabulary *v, const char *const *texts, int64_t count, int64_t size)
{
    bool pairs = v->units == SB_UNITS_BPE, ok = true;
    struct counts units = {0}, words = {0};
    for (int64_t i = 0; ok && i < count; i++)
        ok = pairs ? vocabulary_count_spaced_words(&words, texts[i])
                   : vocabulary_count_units(&units, v->units, texts[i], strlen(texts[i]), 1);
    for (int64_t i = 0; ok && i < words.known; i++)
        ok = vocabulary_count_units(&units, SB_UNITS_CHARACTERS, table_key(&words.units, i),
                                    table_key_size(&words.units, i), words.uses[i]);
    if (!ok)
        sb_fail("vocabulary_new: out of memory");
    else if (units.known == 0)
        ok = sb_fail("vocabulary_new: all %lld texts are empty", (long long)count);
    else
        ok = vocabulary_add_symbols(v, &units, size - SB_SPECIAL_SYMBOLS) &&
             (!pairs || byte_pairs_learn(v, &words.units, words.uses, size));
    vocabulary_counts_free(&units);
    vocabulary_counts_free(&words);
    return ok;
}

static bool vocabulary_check_size(sb_units units, int64_t size)
{
    int64_t least = SB_SPECIAL_SYMBOLS + (units == SB_UNITS_BYTES ? 256 : 1);
    if (size >= least && size <= INT32_MAX)
        return true;
    return size < least ? sb_fail("vocabulary_new: size is %lld; it must be at least %lld for %s",
                                  (long long)size, (long long)least, sb_units_name(units))
                        : sb_fail("vocabulary_new: size is %lld; it must be at most %d",
                                  (long long)size, INT32_MAX);
}

/* Checks the arguments, and fills in units and size. */
static bool vocabulary_check(const char *const *texts, int64_t count,
                             sb_vocabulary_options *options)
{
    if (!texts)
        return fail_null("vocabulary_new", "texts");
    if (!check_at_least("vocabulary_new", "count", count, 1))
        return false;
    if ((unsigned)options->units >= SB_UNITS)
        return sb_fail("vocabulary_new: units is %d, which does not exist", (int)options->units);
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        if (!text_check("vocabulary_new", texts[i], &size))
            return false;
    }
    if (options->units == SB_UNITS_AUTO && !sb_units_detect(texts, count, &options->units))
        return false;
    if (options->size == 0)
        options->size = options->units == SB_UNITS_BPE ? BPE_SIZE : INT32_MAX;
    return vocabulary_check_size(options->units, options->size);
}

/* The number that a unit is, as sb_vocabulary_of_ids writes it; -1: it is none. */
static int64_t vocabulary_number(struct unit unit)
{
    int64_t number = 0;
    for (size_t i = 0; i < unit.size; i++)
        number = unit.text[i] < '0' || unit.text[i] > '9' || number < 0 || number > 1 << 24
                     ? -1
                     : 10 * number + unit.text[i] - '0';
    return unit.size == 0 || (unit.text[0] == '0' && unit.size > 1) ? -1 : number;
}

/* The ids of checked texts, then begin and end. */
static sb_vocabulary *vocabulary_learn_ids(const char *const *texts, int64_t count)
{
    int64_t size = 0;
    for (int64_t i = 0; i < count; i++) {
        struct unit unit;
        const size_t length = strlen(texts[i]);
        for (size_t at = 0; unit_next(SB_UNITS_IDS, texts[i], length, &at, &unit);) {
            const int64_t id = vocabulary_number(unit);
            if (id < 0)
                return sb_fail("vocabulary_new: text %lld has more than ids, which are numbers "
                               "between spaces; choose other units",
                               (long long)i);
            size = id >= size ? id + 1 : size;
        }
    }
    return sb_vocabulary_of_ids(size + 2, -1, (int32_t)size, (int32_t)size + 1);
}

sb_vocabulary *sb_vocabulary_new(const char *const *texts, int64_t count,
                                 const sb_vocabulary_options *options)
{
    sb_vocabulary_options settled = options ? *options : (sb_vocabulary_options){0};
    if (!vocabulary_check(texts, count, &settled))
        return NULL;
    if (settled.units == SB_UNITS_IDS)
        return vocabulary_learn_ids(texts, count);
    sb_vocabulary *v = vocabulary_empty(settled.units);
    if (!v)
        return sb_fail("vocabulary_new: out of memory");
    bool ok = settled.units == SB_UNITS_BYTES
                  ? vocabulary_add_bytes(v) || sb_fail("vocabulary_new: out of memory")
                  : learn(v, texts, count, settled.size);
    if (ok)
        return v;
    sb_vocabulary_release(v);
    return NULL;
}
