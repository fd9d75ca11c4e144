/* UTF-8: checks untrusted text, and quotes it safely in messages. */
#ifndef SOFTBACK_TENSOR_UTF8_H
#define SOFTBACK_TENSOR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point at text[*at]; advances *at past it. -1, with *at unchanged, at the end of the text
   and where the bytes are not UTF-8. */
int32_t utf8_next(const char *text, size_t size, size_t *at);

/* Whether all of a text is UTF-8. */
bool utf8_valid(const char *text, size_t size);

/* The length in bytes of the longest prefix that is valid UTF-8. */
size_t utf8_valid_size(const char *text, size_t size);

/* A text in double quotes, for a message: with '?' in place of control characters and of bytes
   that are not UTF-8, and without its middle when it is long. */
struct quoted {
    char text[256];
};
struct quoted utf8_quote(const char *text);

/* The length of the character at the start of `text`, or 1 for a byte that is not UTF-8. *shown: it
   may be shown; not such a byte, nor a control character such as ESC, except for LF and TAB, nor
   one that reorders bidirectional text, such as U+202E. */
size_t utf8_take(const char *text, size_t size, bool *shown);

/* Puts '?' in place of what is not to be shown. For text from elsewhere: data, files, arguments. */
void utf8_disarm(char *text);

/* The number of terminal columns of a text. */
int utf8_columns(const char *text);

#endif
