#include "tensor/memory.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifndef __wasi__
#include <pthread.h>
#endif

enum { HEADER = 16 }; /* holds the object's size and keeps objects aligned for any type */

static void *system_take(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

/* glibc's free keeps blocks below its heap's top, also large ones once such a size was freed. */
static void system_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

struct pool memory_host = {
    .system_take = system_take,
    .system_give = free,
    .system_trim = system_trim,
    .lock = ATOMIC_FLAG_INIT,
};

#ifndef __wasi__ /* a child has no thread that would return the lock of another one */
static void memory_begin_fork(void)
{
    pool_lock(&memory_host);
}

static void memory_end_fork(void)
{
    pool_unlock(&memory_host);
}

__attribute__((constructor)) static void memory_survive_fork(void)
{
    pthread_atfork(memory_begin_fork, memory_end_fork, memory_end_fork);
}
#endif

struct pool *memory_pool(void)
{
    return &memory_host;
}

static size_t size_of(const void *object)
{
    size_t bytes;
    memcpy(&bytes, (const char *)object - HEADER, sizeof bytes);
    return bytes;
}

void *memory_new(size_t bytes)
{
    char *block = bytes < SIZE_MAX / 8 ? pool_take(memory_pool(), bytes + HEADER) : NULL;
    if (!block)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return memset(block + HEADER, 0, bytes);
}

void memory_free(void *object)
{
    if (object)
        pool_give(memory_pool(), (char *)object - HEADER, size_of(object) + HEADER);
}

void *memory_resize(void *object, size_t bytes)
{
    void *grown = memory_new(bytes);
    if (grown && object) {
        size_t old = size_of(object);
        memcpy(grown, object, old < bytes ? old : bytes);
        memory_free(object);
    }
    return grown;
}

bool memory_room(void *array_pointer, int64_t count, int64_t *room, size_t item_bytes)
{
    if (count < *room)
        return true;
    int64_t wanted = *room ? 2 * *room : 16;
    void *array;
    memcpy(&array, array_pointer, sizeof array);
    void *grown = memory_resize(array, (size_t)wanted * item_bytes);
    if (!grown)
        return false;
    memcpy(array_pointer, &grown, sizeof grown);
    *room = wanted;
    return true;
}

char *memory_text_part(const char *text, size_t size)
{
    char *copy = memory_new(size + 1);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *memory_text(const char *text)
{
    return memory_text_part(text, strlen(text));
}

char *memory_format_list(const char *format, va_list values)
{
    va_list again;
    va_copy(again, values);
    int size = vsnprintf(NULL, 0, format, values);
    char *text = size < 0 ? NULL : memory_new((size_t)size + 1);
    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

char *memory_format(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = memory_format_list(format, values);
    va_end(values);
    return text;
}
