/*
 * Parses untrusted JSON with Jansson.
 *
 * Jansson 2.14 does not handle out of memory: a string may lose a character, or an assertion ends
 * the program. So the most memory that a text can need is computed first and allocated in one
 * block, from which Jansson is served.
 */
#ifndef SOFTBACK_TENSOR_JSON_H
#define SOFTBACK_TENSOR_JSON_H

#include <jansson.h>
#include <stdbool.h>

struct json {
    json_t *value; /* read-only; valid until json_free */
    char *block;
    size_t size, used;
};

/*
 * Parses a text. Fails when it is malformed or has a NUL byte, when an object has a key twice, when
 * a string is not UTF-8 or contains NUL, when nesting needs more than 36 bytes of memory for each
 * byte of text, and when memory runs out; then there is nothing to free. `what` opens the message.
 */
bool json_read(struct json *json, const char *what, const char *text, size_t size);

void json_free(struct json *json);

/* A value that was made, or NULL, and it is released, where a part of it could not be made. */
static inline json_t *json_if(bool complete, json_t *value)
{
    if (!complete)
        json_decref(value);
    return complete ? value : NULL;
}

#endif
