/* A growing array of bytes, for texts that are made piece by piece. */
#ifndef SOFTBACK_MODELS_TEXT_BUFFER_H
#define SOFTBACK_MODELS_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *bytes;
    size_t size, room;
};

/* Appends bytes, which may lie in the buffer itself; false when there is no memory. */
bool buffer_add(struct buffer *buffer, const void *bytes, size_t size);

/* Appends a text without its end. */
bool buffer_add_text(struct buffer *buffer, const char *text);

/* Returns the bytes as a text for memory_free, and empties the buffer; NULL without memory. */
char *buffer_take(struct buffer *buffer);

void buffer_free(struct buffer *buffer);

#endif
