/* UTF-8: checking text that comes from outside, and showing it safely in messages. */
#ifndef SOFTBACK_TENSOR_UTF8_H
#define SOFTBACK_TENSOR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The length of the character at the start of `text`, 1 to 4 bytes; 0 when the bytes there are not
 * UTF-8: cut off, longer than necessary, a surrogate, or above U+10FFFF.
 */
size_t utf8_length(const char *text, size_t size);

/* The code point at text[*at], which moves behind it; -1, with *at unchanged, at the end of the
   text and where the bytes are not UTF-8. */
int32_t utf8_next(const char *text, size_t size, size_t *at);

/* Whether all of a text is UTF-8. */
bool utf8_valid(const char *text, size_t size);

/* How many of a text's bytes are UTF-8 up to the first that are not; `size` when all of them are.
 */
size_t utf8_valid_size(const char *text, size_t size);

/* A text in double quotes, for a message: with '?' in place of control characters and of bytes
   that are not UTF-8, and without its middle when it is long. */
struct quoted {
    char text[256];
};
struct quoted utf8_quote(const char *text);

/* How many columns of a terminal a text takes. */
int utf8_columns(const char *text);

#endif
