/*
 * JSON from strangers, read by Jansson.
 *
 * Jansson (2.14) does not survive a lack of memory: a text for which it cannot make room loses a
 * letter, or an assertion ends the program. So all the memory that it can need is found out from
 * the text and taken beforehand, in one block, from which it is then served.
 */
#ifndef SOFTBACK_TENSOR_JSON_H
#define SOFTBACK_TENSOR_JSON_H

#include <jansson.h>
#include <stdbool.h>

struct json {
    json_t *value; /* to be looked at, not to be changed or kept */
    char *block;
    size_t size, used;
};

/*
 * Reads a text: no key twice in an object, all texts UTF-8 without NUL, and not so much nested that
 * it takes more than 36 bytes of memory for each byte of text. When it is malformed or memory runs
 * out there is a message, which `what` opens, and nothing to free.
 */
bool json_read(struct json *json, const char *what, const char *text, size_t size);

void json_free(struct json *json);

#endif
