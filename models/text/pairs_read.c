#include "models/text/pairs_read.h"
#include "tensor/failure.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        return sb_fail("%s: none of %lld lines is a pair; the first: %s", name,
                       (long long)reading->lines, first);
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
