#include "models/text/buffer.h"
#include "tensor/memory.h"
#include <string.h>

bool buffer_add(struct buffer *buffer, const void *bytes, size_t size)
{
    if (size > buffer->room - buffer->size) {
        if (size > SIZE_MAX / 4 || buffer->room > SIZE_MAX / 4)
            return false;
        size_t room =
            2 * buffer->room > buffer->size + size ? 2 * buffer->room : buffer->size + size + 64;
        char *grown = memory_new(room);
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
