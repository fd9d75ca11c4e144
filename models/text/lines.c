#include "models/text/lines.h"
#include "tensor/error.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

enum { CHUNK = 1 << 16, NO_TEXT = 1 << 28 };

bool lines_begin(struct lines *lines, const char *name, size_t limit, lines_source *source,
                 void *from)
{
    *lines = (struct lines){.name = name, .limit = limit, .source = source, .from = from};
    lines->chunk = memory_new(CHUNK);
    return lines->chunk || sb_fail("%s: out of memory", name);
}

void lines_end(struct lines *lines)
{
    memory_free(lines->chunk);
    buffer_free(&lines->line);
    *lines = (struct lines){0};
}

/* Appends bytes to the line, up to the limit; a byte-order mark and CR may exceed it. */
static bool lines_take(struct lines *lines, const char *bytes, size_t size)
{
    size_t room = lines->limit + 4 - lines->line.size;
    lines->size += size;
    if (lines->size > NO_TEXT)
        return sb_fail("%s:%lld: the line is longer than %d bytes; the file must be a text",
                       lines->name, (long long)lines->number, NO_TEXT);
    return buffer_add(&lines->line, bytes, size < room ? size : room) ||
           sb_fail("%s: out of memory", lines->name);
}

/* Appends bytes up to the end of the line; *ended: the end was reached. */
static bool lines_take_chunk(struct lines *lines, bool *ended)
{
    if (lines->at == lines->filled) {
        int64_t got = lines->source(lines->from, lines->chunk, CHUNK);
        if (got < 0)
            return false;
        lines->at = 0;
        lines->filled = (size_t)got;
        lines->ended = *ended = got == 0;
    }
    const char *start = lines->chunk + lines->at;
    const char *end = memchr(start, '\n', lines->filled - lines->at);
    size_t size = end ? (size_t)(end - start) : lines->filled - lines->at;
    *ended = *ended || end;
    lines->at += size + (end != NULL);
    return lines_take(lines, start, size);
}

/* Skips the byte-order mark and CR. */
static void lines_trim(struct lines *lines)
{
    size_t kept = lines->line.size - 1; /* without the NUL */
    lines->text = lines->line.bytes;
    if (lines->number == 1 && kept >= 3 && memcmp(lines->text, "\xEF\xBB\xBF", 3) == 0) {
        lines->text += 3;
        lines->size -= 3;
        kept -= 3;
    }
    if (kept > 0 && kept == lines->size && lines->text[kept - 1] == '\r') {
        lines->line.bytes[lines->line.size - 2] = '\0';
        lines->size--;
    }
    lines->too_long = lines->size > lines->limit;
}

bool lines_next(struct lines *lines, bool *more)
{
    bool ended = false, begun = false;
    lines->line.size = lines->size = 0;
    lines->number++;
    while (!ended && !lines->ended) {
        if (!lines_take_chunk(lines, &ended))
            return false;
        begun = begun || lines->size > 0 || (ended && !lines->ended);
    }
    *more = begun;
    if (!buffer_add(&lines->line, "", 1))
        return sb_fail("%s: out of memory", lines->name);
    lines_trim(lines);
    return true;
}

struct lines_problem lines_problem(const struct lines *lines)
{
    struct lines_problem problem = {""};
    if (lines->too_long) {
        snprintf(problem.text, sizeof problem.text, "%zu bytes, expected at most %zu", lines->size,
                 lines->limit);
        return problem;
    }
    const char *nul = memchr(lines->text, '\0', lines->size);
    const size_t bad = utf8_valid_size(lines->text, lines->size);
    if (nul)
        snprintf(problem.text, sizeof problem.text, "byte %zu is NUL, as in UTF-16, not UTF-8",
                 (size_t)(nul - lines->text) + 1);
    else if (bad < lines->size)
        snprintf(problem.text, sizeof problem.text, "byte %zu (0x%02x) is not UTF-8", bad + 1,
                 (unsigned char)lines->text[bad]);
    return problem;
}
