#include "program/screen/stream.h"
#include "models/text/pairs.h"
#include "program/screen/foreign.h"
#include "tensor/device.h"
#include "tensor/utf8.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- lines of the standard input ---- */

/* Reads what is available without filling the buffer, as someone may wait for the answer. */
static int64_t input_read(void *unused, char *bytes, size_t room)
{
    (void)unused;
    ssize_t size;
    do
        size = read(STDIN_FILENO, bytes, room);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        sb_fail(INPUT ": cannot be read: %s", strerror(errno));
    return size;
}

bool input_begin(struct lines *lines)
{
    return lines_begin(lines, INPUT, SB_PAIRS_LINE, input_read, NULL);
}

void input_refuse(int64_t number, const char *reason)
{
    fprintf(stderr, "%s: " INPUT ":%lld: %s\n", program_invocation_name, (long long)number, reason);
}

/* ---- symbols that a model does not know ---- */

static sb_unknown unknown_find(const sb_vocabulary *vocabulary, const char *text)
{
    sb_unknown unknown = {0};
    int64_t count;
    sb_free(sb_vocabulary_encode(vocabulary, text, &count, &unknown));
    return unknown;
}

int64_t unknown_count(const sb_vocabulary *vocabulary, const char *text)
{
    return unknown_find(vocabulary, text).count;
}

bool unknown_note(const char *where, const sb_vocabulary *vocabulary, const char *text)
{
    sb_unknown unknown = unknown_find(vocabulary, text);
    char symbol[128];
    if (unknown.count == 0)
        return false;
    snprintf(symbol, sizeof symbol, "%.*s", (int)unknown.first_size, text + unknown.first);
    fprintf(stderr, "%s: %s: %s is unknown to the model", program_invocation_name, where,
            utf8_quote(symbol).text);
    if (unknown.count > 1)
        fprintf(stderr, ", and %lld more", (long long)unknown.count - 1);
    fputc('\n', stderr);
    return true;
}

/* ---- texts on the standard output ---- */

void stream_print(const char *text, bool line)
{
    text = line ? foreign_line(text) : text;
    fputs(isatty(STDOUT_FILENO) ? foreign(text) : text, stdout);
}

bool stream_begin(struct stream *s, const sb_vocabulary *vocabulary, const char *prompt, bool line)
{
    int64_t n;
    *s = (struct stream){.vocabulary = vocabulary, .line = line};
    stream_print(prompt, line);
    int32_t *ids = sb_vocabulary_encode(vocabulary, prompt, &n, NULL);
    if (ids && n > 0)
        s->id[s->count++] = ids[n - 1];
    s->shown = s->count;
    sb_free(ids);
    return ids != NULL;
}

/* Whether a text ends within a character; its bytes may still come. */
static bool stream_is_open(const struct stream *s, const char *text)
{
    static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
    const size_t size = strlen(text), mark = sizeof replacement - 1;
    return sb_vocabulary_units(s->vocabulary) == SB_UNITS_BYTES && s->count - s->shown < 4 &&
           size >= mark && memcmp(text + size - mark, replacement, mark) == 0;
}

/* The text of what waits depends on the symbol before it: words have a space between them. */
static bool stream_show(struct stream *s, bool all)
{
    char *before = sb_vocabulary_decode(s->vocabulary, s->id, s->shown),
         *text = before ? sb_vocabulary_decode(s->vocabulary, s->id, s->count) : NULL;
    const bool show = text && s->count > s->shown && (all || !stream_is_open(s, text));
    if (show) {
        stream_print(text + strlen(before), s->line);
        fflush(stdout);
        s->id[0] = s->id[s->count - 1];
        s->shown = s->count = 1;
    }
    const bool ok = text != NULL;
    sb_free(before);
    sb_free(text);
    return ok && (!ferror(stdout) || sb_fail("cannot write to standard output"));
}

bool stream_listen(void *stream, int64_t text, int32_t id)
{
    struct stream *s = stream;
    (void)text;
    s->id[s->count++] = id;
    return stream_show(s, s->count == STREAM_SYMBOLS);
}

bool stream_end(struct stream *s)
{
    return stream_show(s, true);
}
