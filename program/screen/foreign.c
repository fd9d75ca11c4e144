#include "program/screen/foreign.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPIES = 8 };

/* Keeps a copy of the text, unless it is equal; NULL: there is no memory. */
static const char *foreign_keep(const char *text, char *copy)
{
    static char *copies[COPIES];
    static int next;
    if (!copy)
        return "(out of memory)";
    if (strcmp(copy, text) == 0) {
        memory_free(copy);
        return text;
    }
    memory_free(copies[next]);
    copies[next] = copy;
    next = (next + 1) % COPIES;
    return copy;
}

const char *foreign(const char *text)
{
    char *copy = memory_text(text);
    if (copy)
        utf8_disarm(copy);
    return foreign_keep(text, copy);
}

/* Whether a character must not be in a line: a control character but TAB, or U+0085, U+2028 or
   U+2029, at which Python's splitlines cuts. */
static bool ends_line(int32_t c)
{
    return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7F || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

const char *foreign_line(const char *text)
{
    enum { LONGEST_ESCAPE = 4 }; /* of a byte */
    const size_t size = strlen(text);
    char *copy = memory_new(LONGEST_ESCAPE * size + 1), *to = copy;
    for (size_t at = 0; copy && at < size;) {
        const size_t from = at;
        const int32_t c = utf8_next(text, size, &at);
        at += at == from; /* a byte that is not UTF-8 */
        if (c == '\n' || c == '\r')
            to += sprintf(to, c == '\n' ? "\\n" : "\\r");
        else if (ends_line(c))
            to += sprintf(to, c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
        else
            to = (char *)memcpy(to, text + from, at - from) + (at - from);
    }
    return foreign_keep(text, copy);
}

static bool terminal_is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] != '\0';
}

bool terminal_has_colour(int descriptor)
{
    const char *kind = getenv("TERM");
    if (terminal_is_set("NO_COLOR"))
        return false;
    if (terminal_is_set("CLICOLOR_FORCE") && strcmp(getenv("CLICOLOR_FORCE"), "0") != 0)
        return true;
    return isatty(descriptor) && !(kind && strcmp(kind, "dumb") == 0);
}
