/* Host memory for the library's own objects: zeroed and counted; tests can make it fail. */
#ifndef SOFTBACK_TENSOR_MEMORY_H
#define SOFTBACK_TENSOR_MEMORY_H

#include "tensor/pool.h"
#include <stdarg.h>

/* The pool of host memory, which also holds the data of CPU tensors. */
extern struct pool memory_host;
struct pool *memory_pool(void);

/* Zeroed memory for an object, or NULL without a message. */
void *memory_new(size_t bytes);

/* Changes the size of an object (NULL: a new one); new bytes are zero. On failure the object is
   unchanged. */
void *memory_resize(void *object, size_t bytes);

void memory_free(void *object);

/* Makes room for one more item in a growing array of `count`; false when out of memory. */
bool memory_room(void *array_pointer, int64_t count, int64_t *room, size_t item_bytes);

char *memory_text(const char *text);                   /* a copy of a text, or NULL */
char *memory_text_part(const char *text, size_t size); /* a copy of its first bytes, or NULL */
char *memory_format(const char *format, ...);          /* a formatted text as by printf, or NULL */
char *memory_format_list(const char *format, va_list values);

#endif
