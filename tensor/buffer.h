/*
 * A growing array of bytes, for texts that are made piece by piece. Without memory it fails, and
 * nothing more is appended: who asks at the end, by buffer_take, need not ask after each piece.
 */
#ifndef SOFTBACK_TENSOR_BUFFER_H
#define SOFTBACK_TENSOR_BUFFER_H

#include "tensor/error.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *bytes;
    size_t size, room;
    bool failed;
};

/* Appends bytes, which may lie in the buffer itself; false when there is, or was, no memory. */
bool buffer_add(struct buffer *buffer, const void *bytes, size_t size);

/* Appends a text without its end. */
bool buffer_add_text(struct buffer *buffer, const char *text);

/* Appends a formatted text, of which 1,023 bytes at most. */
void buffer_print(struct buffer *buffer, const char *format, ...) SB_PRINTF(2, 3);
void buffer_print_list(struct buffer *buffer, const char *format, va_list values) SB_PRINTF(2, 0);

/* Appends a text with these of its characters as in &#34;, which XML and Graphviz read as a quote,
   and "?" for each that cannot be shown. */
void buffer_escape(struct buffer *buffer, const char *text, size_t size, const char *characters);

/* Returns the bytes as a text for memory_free, and empties the buffer; NULL without memory. */
char *buffer_take(struct buffer *buffer);

void buffer_free(struct buffer *buffer);

#endif
