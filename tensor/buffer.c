#include "tensor/buffer.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <string.h>

bool buffer_add(struct buffer *buffer, const void *bytes, size_t size)
{
    if (buffer->failed)
        return false;
    if (size > buffer->room - buffer->size) {
        const bool fits = size <= SIZE_MAX / 4 && buffer->room <= SIZE_MAX / 4;
        size_t room =
            2 * buffer->room > buffer->size + size ? 2 * buffer->room : buffer->size + size + 64;
        char *grown = fits ? memory_new(room) : NULL;
        buffer->failed = !grown;
        if (!grown)
            return false;
        if (buffer->size > 0)
            memcpy(grown, buffer->bytes, buffer->size);
        if (size > 0)
            memcpy(grown + buffer->size, bytes, size);
        memory_free(buffer->bytes); /* only now: `bytes` may lie in it */
        buffer->bytes = grown;
        buffer->room = room;
    } else if (size > 0) {
        memcpy(buffer->bytes + buffer->size, bytes, size);
    }
    buffer->size += size;
    return true;
}

bool buffer_add_text(struct buffer *buffer, const char *text)
{
    return buffer_add(buffer, text, strlen(text));
}

void buffer_print(struct buffer *buffer, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    buffer_print_list(buffer, format, values);
    va_end(values);
}

void buffer_print_list(struct buffer *buffer, const char *format, va_list values)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, values);
    buffer_add_text(buffer, text);
}

void buffer_escape(struct buffer *buffer, const char *text, size_t size, const char *characters)
{
    bool shown;
    for (size_t length; size > 0; size -= length, text += length) {
        length = utf8_take(text, size, &shown);
        if (!shown)
            buffer_add_text(buffer, "?");
        else if (strchr(characters, *text))
            buffer_print(buffer, "&#%d;", *text);
        else
            buffer_add(buffer, text, length);
    }
}

char *buffer_take(struct buffer *buffer)
{
    char *text = buffer_add(buffer, "", 1) ? buffer->bytes : NULL;
    if (text)
        *buffer = (struct buffer){0};
    else
        buffer_free(buffer);
    return text;
}

void buffer_free(struct buffer *buffer)
{
    memory_free(buffer->bytes);
    *buffer = (struct buffer){0};
}
