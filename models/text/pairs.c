#include "models/text/pairs.h"
#include "models/text/lines.h"
#include "models/text/table.h"
#include "models/text/unit.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CHUNK = 1 << 14, LATER_CHUNK = 1 << 20 };

/* Texts lie in chunks, which never move, one after another. */
struct chunk {
    struct chunk *next;
    size_t used, room;
    char text[];
};

struct sb_pairs {
    const char **source, **target;
    int64_t count, source_room, target_room;
    struct chunk *chunk;
    int64_t skipped;
    char *problem[SB_PAIRS_PROBLEMS];
};

sb_pairs *sb_pairs_new(void)
{
    sb_pairs *pairs = memory_new(sizeof *pairs);
    return pairs ? pairs : sb_fail("pairs_new: out of memory");
}

void sb_pairs_free(sb_pairs *pairs)
{
    if (!pairs)
        return;
    for (struct chunk *chunk = pairs->chunk, *next; chunk; chunk = next) {
        next = chunk->next;
        memory_free(chunk);
    }
    for (int i = 0; i < SB_PAIRS_PROBLEMS; i++)
        memory_free(pairs->problem[i]);
    memory_free(pairs->source);
    memory_free(pairs->target);
    memory_free(pairs);
}

/* A copy of a text that lives as long as the pairs; NULL without memory. */
static const char *pairs_keep(sb_pairs *pairs, const char *text, size_t size)
{
    struct chunk *chunk = pairs->chunk;
    if (!chunk || chunk->room - chunk->used <= size) {
        size_t usual = chunk ? LATER_CHUNK : FIRST_CHUNK, room = size < usual ? usual : size + 1;
        chunk = memory_new(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->room = room;
        chunk->next = pairs->chunk;
        pairs->chunk = chunk;
    }
    char *copy = memcpy(chunk->text + chunk->used, text, size);
    chunk->used += size + 1;
    return copy;
}

/* Adds parts of lines that have been checked. */
static bool pairs_add(sb_pairs *pairs, const char *source, size_t source_size, const char *target,
                      size_t target_size)
{
    if (!memory_room(&pairs->source, pairs->count, &pairs->source_room, sizeof(char *)) ||
        !memory_room(&pairs->target, pairs->count, &pairs->target_room, sizeof(char *)))
        return false;
    const char *kept = pairs_keep(pairs, source, source_size);
    pairs->source[pairs->count] = kept;
    pairs->target[pairs->count] = kept ? pairs_keep(pairs, target, target_size) : NULL;
    if (!pairs->target[pairs->count])
        return false;
    pairs->count++;
    return true;
}

bool sb_pairs_add(sb_pairs *pairs, const char *source, const char *target)
{
    size_t source_size, target_size;
    if (!pairs)
        return fail_null("pairs_add", "pairs");
    return text_check("pairs_add", source, &source_size) &&
           text_check("pairs_add", target, &target_size) &&
           (pairs_add(pairs, source, source_size, target, target_size) ||
            sb_fail("pairs_add: out of memory"));
}

/* Counts a malformed line and keeps its message while there is room. */
static bool pairs_skip(sb_pairs *pairs, const char *problem)
{
    if (pairs->skipped < SB_PAIRS_PROBLEMS) {
        pairs->problem[pairs->skipped] = memory_text(problem);
        if (!pairs->problem[pairs->skipped])
            return false;
    }
    pairs->skipped++;
    return true;
}

int64_t sb_pairs_count(const sb_pairs *pairs)
{
    return pairs ? pairs->count : 0;
}

static bool pairs_has(const char *who, const sb_pairs *pairs, int64_t index)
{
    if (!pairs)
        return fail_null(who, "pairs");
    return (index >= 0 && index < pairs->count) ||
           sb_fail("%s: there is no pair %lld; there are %lld", who, (long long)index,
                   (long long)pairs->count);
}

const char *sb_pairs_source(const sb_pairs *pairs, int64_t index)
{
    return pairs_has("pairs_source", pairs, index) ? pairs->source[index] : NULL;
}

const char *sb_pairs_target(const sb_pairs *pairs, int64_t index)
{
    return pairs_has("pairs_target", pairs, index) ? pairs->target[index] : NULL;
}

const char *const *sb_pairs_sources(const sb_pairs *pairs)
{
    return pairs ? (const char *const *)pairs->source : fail_null("pairs_sources", "pairs");
}

const char *const *sb_pairs_targets(const sb_pairs *pairs)
{
    return pairs ? (const char *const *)pairs->target : fail_null("pairs_targets", "pairs");
}

int64_t sb_pairs_skipped(const sb_pairs *pairs)
{
    return pairs ? pairs->skipped : 0;
}

const char *sb_pairs_problem(const sb_pairs *pairs, int64_t index)
{
    return pairs && index >= 0 && index < SB_PAIRS_PROBLEMS ? pairs->problem[index] : NULL;
}

/* The pairs of each source. */
struct sources {
    struct table table;
    int64_t *group; /* of each pair: the index of its source */
    int64_t *pairs; /* of each source: its number of pairs */
    bool *held;     /* of each source */
};

static bool pairs_group_sources(struct sources *sources, const sb_pairs *pairs)
{
    size_t count = (size_t)pairs->count;
    sources->group = memory_new(count * sizeof(int64_t));
    sources->pairs = memory_new(count * sizeof(int64_t));
    sources->held = memory_new(count * sizeof(bool));
    if (!sources->group || !sources->pairs || !sources->held)
        return false;
    for (int64_t i = 0; i < pairs->count; i++) {
        sources->group[i] = table_add(&sources->table, pairs->source[i], strlen(pairs->source[i]));
        if (sources->group[i] < 0)
            return false;
        sources->pairs[sources->group[i]]++;
    }
    return true;
}

/* Holds out sources in the order of their hashes, as long as they fit; *held is how many pairs. */
static bool pairs_hold_out(struct sources *sources, int64_t wanted, int64_t *held)
{
    struct heap heap = {0};
    struct heap_item item;
    bool ok = true;
    for (int64_t i = 0; ok && i < sources->table.count; i++)
        ok = heap_add(&heap, sources->table.key[i].hash, (uint64_t)i);
    for (*held = 0; ok && *held < wanted && heap_take(&heap, &item);) {
        if (*held + sources->pairs[item.second] <= wanted) {
            sources->held[item.second] = true;
            *held += sources->pairs[item.second];
        }
    }
    heap_free(&heap);
    return ok;
}

static bool pairs_copy_sides(const sb_pairs *pairs, const struct sources *sources,
                             sb_pairs *side[2])
{
    for (int i = 0; i < 2; i++)
        if (!(side[i] = memory_new(sizeof *side[i])))
            return false;
    for (int64_t i = 0; i < pairs->count; i++) {
        const char *source = pairs->source[i], *target = pairs->target[i];
        if (!pairs_add(side[sources->held[sources->group[i]]], source, strlen(source), target,
                       strlen(target)))
            return false;
    }
    return true;
}

bool sb_pairs_divide(const sb_pairs *pairs, int64_t held_out, sb_pairs **rest, sb_pairs **held)
{
    if (!pairs || !rest || !held)
        return fail_null("pairs_divide", !pairs ? "pairs" : !rest ? "rest" : "held");
    if (held_out < 1 || held_out >= pairs->count)
        return sb_fail("pairs_divide: held_out is %lld of %lld pairs; neither side may be empty",
                       (long long)held_out, (long long)pairs->count);
    struct sources sources = {0};
    sb_pairs *side[2] = {NULL, NULL};
    int64_t taken = 0;
    bool ok = pairs_group_sources(&sources, pairs) && pairs_hold_out(&sources, held_out, &taken);
    if (ok && taken == 0)
        ok = sb_fail("pairs_divide: held_out is %lld, but every source has more pairs",
                     (long long)held_out);
    else
        ok = (ok && pairs_copy_sides(pairs, &sources, side)) ||
             sb_fail("pairs_divide: out of memory");
    table_free(&sources.table);
    memory_free(sources.group);
    memory_free(sources.pairs);
    memory_free(sources.held);
    if (!ok) {
        sb_pairs_free(side[0]);
        sb_pairs_free(side[1]);
        return false;
    }
    *rest = side[0];
    *held = side[1];
    return true;
}

int64_t sb_pairs_shared(const sb_pairs *a, const sb_pairs *b)
{
    struct table table = {0};
    int64_t shared = 0;
    for (int64_t i = 0; shared >= 0 && i < sb_pairs_count(a); i++)
        if (table_add(&table, a->source[i], strlen(a->source[i])) < 0)
            shared = -1;
    for (int64_t i = 0; shared >= 0 && i < sb_pairs_count(b); i++)
        shared += table_find(&table, b->source[i], strlen(b->source[i])) >= 0;
    table_free(&table);
    if (shared < 0)
        sb_fail("pairs_shared: out of memory");
    return shared;
}

/* ---- reading ---- */

struct reading {
    sb_pairs *pairs;
    bool strict;
    int64_t lines;
    char problem[512]; /* of the current line; "" when it is well-formed */
};

/* Keeps the first problem of a line. */
SB_PRINTF(3, 4)
static void pairs_note(struct reading *reading, const struct lines *lines, const char *format, ...)
{
    if (reading->problem[0])
        return;
    size_t room = sizeof reading->problem;
    int used =
        snprintf(reading->problem, room, "%.300s:%lld: ", lines->name, (long long)lines->number);
    va_list values;
    va_start(values, format);
    vsnprintf(reading->problem + used, room - (size_t)used, format, values);
    va_end(values);
}

/* Checks what holds for every line. */
static void pairs_check_line(struct reading *reading, const struct lines *lines)
{
    const struct lines_problem problem = lines_problem(lines);
    if (problem.text[0])
        pairs_note(reading, lines, "%s", problem.text);
    else if (lines->size == 0)
        pairs_note(reading, lines, "the line is empty");
}

static int64_t pairs_tabs(const struct lines *lines)
{
    int64_t count = 0;
    for (size_t i = 0; i < lines->size; i++)
        count += lines->text[i] == '\t';
    return count;
}

/* Finishes a line or pair of lines: adds it, or counts it as malformed. */
static bool pairs_finish_line(struct reading *reading, const char *source, size_t source_size,
                              const char *target, size_t target_size)
{
    reading->lines++;
    bool ok = true;
    if (!reading->problem[0])
        ok = pairs_add(reading->pairs, source, source_size, target, target_size);
    else if (reading->strict)
        return sb_fail("%s", reading->problem);
    else
        ok = pairs_skip(reading->pairs, reading->problem);
    reading->problem[0] = '\0';
    return ok || sb_fail("pairs: out of memory");
}

static bool read_line(struct reading *reading, const struct lines *lines)
{
    pairs_check_line(reading, lines);
    if (reading->problem[0])
        return pairs_finish_line(reading, NULL, 0, NULL, 0);
    const char *tab = memchr(lines->text, '\t', lines->size);
    size_t before = tab ? (size_t)(tab - lines->text) : 0;
    size_t behind = tab ? lines->size - before - 1 : 0;
    if (!tab)
        pairs_note(reading, lines, "no tab between source and target");
    else if (memchr(tab + 1, '\t', behind))
        pairs_note(reading, lines, "%lld tabs, expected one between source and target",
                   (long long)pairs_tabs(lines));
    else if (before == 0 || behind == 0)
        pairs_note(reading, lines, "the %s is empty", before == 0 ? "source" : "target");
    return pairs_finish_line(reading, lines->text, before, tab ? tab + 1 : NULL, behind);
}

static bool read_tsv(struct reading *reading, struct lines *lines)
{
    bool more = true;
    while (more) {
        if (!lines_next(lines, &more) || (more && !read_line(reading, lines)))
            return false;
    }
    return true;
}

static bool read_two(struct reading *reading, struct lines *sources, struct lines *targets)
{
    bool source = true, target = true;
    while (source && target) {
        if (!lines_next(sources, &source) || !lines_next(targets, &target))
            return false;
        if (!source && !target)
            break;
        if (!source || !target)
            return sb_fail("%s ends after %lld lines, but %s has more",
                           source ? targets->name : sources->name, (long long)reading->lines,
                           source ? sources->name : targets->name);
        pairs_check_line(reading, sources);
        pairs_check_line(reading, targets);
        if (!pairs_finish_line(reading, sources->text, sources->size, targets->text, targets->size))
            return false;
    }
    return true;
}

/* Whether there are pairs, and few enough malformed lines. */
static bool pairs_accept(const struct reading *reading, const char *name)
{
    const sb_pairs *pairs = reading->pairs;
    int64_t skipped = sb_pairs_skipped(pairs);
    const char *first = sb_pairs_problem(pairs, 0);
    if (reading->lines == 0)
        return sb_fail("%s: the file is empty", name);
    if (sb_pairs_count(pairs) == 0)
        return sb_fail("%s: none of %lld lines is a pair; the first: %s (text without pairs is for "
                       "a language model)",
                       name, (long long)reading->lines, first);
    if (skipped > reading->lines / 10)
        return sb_fail("%s: %lld of %lld lines are malformed, more than one in ten; the first: %s",
                       name, (long long)skipped, (long long)reading->lines, first);
    return true;
}

sb_pairs *pairs_read(const char *who, struct pairs_file sources, const struct pairs_file *targets,
                     const sb_pairs_options *options)
{
    sb_pairs_options none = {0};
    options = options ? options : &none;
    if (options->length < 0 || options->length > 1 << 27)
        return sb_fail("%s: length is %lld; it must be in 0..2^27", who,
                       (long long)options->length);
    size_t limit = options->length ? (size_t)options->length : SB_PAIRS_LINE;
    struct reading reading = {.pairs = sb_pairs_new(), .strict = options->strict};
    struct lines source = {0}, target = {0};
    bool ok =
        reading.pairs && lines_begin(&source, sources.name, limit, sources.source, sources.from);
    if (ok && targets)
        ok = lines_begin(&target, targets->name, limit, targets->source, targets->from) &&
             read_two(&reading, &source, &target);
    else if (ok)
        ok = read_tsv(&reading, &source);
    ok = ok && pairs_accept(&reading, sources.name);
    lines_end(&source);
    lines_end(&target);
    if (ok)
        return reading.pairs;
    sb_pairs_free(reading.pairs);
    return NULL;
}

struct text_source {
    const char *text;
    size_t size;
};

static int64_t read_text(void *from, char *bytes, size_t room)
{
    struct text_source *source = from;
    size_t size = source->size < room ? source->size : room;
    memcpy(bytes, source->text, size);
    source->text += size;
    source->size -= size;
    return (int64_t)size;
}

sb_pairs *sb_pairs_parse(const char *name, const char *text, size_t size,
                         const sb_pairs_options *options)
{
    if (!name || !text)
        return fail_null("pairs_parse", name ? "text" : "name");
    struct text_source from = {text, size};
    return pairs_read("pairs_parse", (struct pairs_file){name, read_text, &from}, NULL, options);
}
