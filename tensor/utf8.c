#include "tensor/utf8.h"
#include <stdint.h>
#include <string.h>

enum { SHOWN_HEAD = 120, SHOWN_TAIL = 80 };

/* Bytes are not UTF-8 when they are cut off, longer than necessary, a surrogate, or above
   U+10FFFF. */
int32_t utf8_next(const char *text, size_t size, size_t *at)
{
    /* The smallest code point for which a form of this length is allowed. */
    static const int32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = (const unsigned char *)text + *at;
    if (*at >= size)
        return -1;
    if (byte[0] < 0x80) {
        ++*at;
        return byte[0];
    }
    size_t length = byte[0] >= 0xF0 ? 4 : byte[0] >= 0xE0 ? 3 : 2;
    if (byte[0] < 0xC2 || byte[0] > 0xF4 || length > size - *at)
        return -1;
    int32_t point = byte[0] & (0xFF >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xC0) != 0x80)
            return -1;
        point = point << 6 | (byte[i] & 0x3F);
    }
    if (point < smallest[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return -1;
    *at += length;
    return point;
}

size_t utf8_valid_size(const char *text, size_t size)
{
    size_t at = 0;
    while (utf8_next(text, size, &at) >= 0)
        ;
    return at;
}

bool utf8_valid(const char *text, size_t size)
{
    return utf8_valid_size(text, size) == size;
}

/* Terminals obey the control characters below U+0020, and U+007F to U+009F. Those of bidirectional
   text (Unicode Standard Annex 9) show the characters around them in another order. */
static bool is_control(int32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

size_t utf8_take(const char *text, size_t size, bool *shown)
{
    size_t at = 0;
    const int32_t c = utf8_next(text, size, &at);
    *shown = c >= 0 && (c == '\n' || c == '\t' || !is_control(c));
    return at ? at : 1;
}

/* Copies the characters of text[0..size), which may be the same place, and returns where they end.
 */
static char *show(char *to, const char *text, size_t size, bool lines)
{
    bool shown;
    for (size_t at = 0, length; at < size; at += length) {
        length = utf8_take(text + at, size - at, &shown);
        shown = shown && (lines || (text[at] != '\n' && text[at] != '\t'));
        memmove(to, shown ? text + at : "?", shown ? length : 1);
        to += shown ? length : 1;
    }
    return to;
}

void utf8_disarm(char *text)
{
    *show(text, text, strlen(text), true) = '\0';
}

/* Whether the byte continues a character. */
static bool is_inside(const char *at)
{
    return ((unsigned char)*at & 0xC0) == 0x80;
}

struct quoted utf8_quote(const char *text)
{
    struct quoted quoted;
    char *to = quoted.text;
    size_t size = strlen(text);
    *to++ = '"';
    if (size <= SHOWN_HEAD + SHOWN_TAIL) {
        to = show(to, text, size, false);
    } else {
        size_t head = SHOWN_HEAD, tail = size - SHOWN_TAIL;
        while (head > SHOWN_HEAD - 3 && is_inside(text + head))
            head--;
        while (tail < size - SHOWN_TAIL + 3 && is_inside(text + tail))
            tail++;
        to = show(to, text, head, false);
        memcpy(to, "...", 3);
        to = show(to + 3, text + tail, size - tail, false);
    }
    memcpy(to, "\"", 2);
    return quoted;
}

/* The number of columns of a code point: 0 for combining accents, 2 for East Asian characters. */
static int columns_of(int32_t c)
{
    if (c >= 0x300 && c < 0x370)
        return 0;
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
                (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
                (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
                (c >= 0xffe0 && c < 0xffe7) || (c >= 0x1f300 && c < 0x1f650) ||
                (c >= 0x20000 && c < 0x3fffe);
    return wide ? 2 : 1;
}

int utf8_columns(const char *text)
{
    int n = 0;
    size_t size = strlen(text), at = 0;
    for (int32_t c; (c = utf8_next(text, size, &at)) >= 0;)
        n += columns_of(c);
    return n;
}
