/*
 * A strict reader of JSON (RFC 8259) that asks for nothing: no memory, no tree.
 *
 * The caller says what it expects and gets it or a failure, so nesting is as deep as the caller's
 * own code. Texts are decoded in place, over the input. Numbers are whole and not negative; that
 * is all that the library's files need.
 *
 *     reader_object(&json);
 *     for (const char *key; (key = reader_key(&json));)
 *         value = reader_whole(&json);
 *     ok = reader_end(&json);
 */
#ifndef SOFTBACK_TENSOR_JSON_READER_H
#define SOFTBACK_TENSOR_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_reader {
    const char *what; /* opens every message */
    char *text;
    size_t size, at;
    bool opened; /* the last thing read was an opening bracket: no comma is due */
    bool failed; /* a message has been left; everything fails from here on */
};

bool reader_object(struct json_reader *json); /* reads '{' */
bool reader_array(struct json_reader *json);  /* reads '[' */

/* The next key of the object; NULL when '}' has been read instead, and on failure. */
char *reader_key(struct json_reader *json);

/* Whether a further item of the array follows; when not, ']' has been read, or it failed. */
bool reader_item(struct json_reader *json);

/* A text, ending with NUL; valid UTF-8 without a NUL inside. NULL on failure. */
char *reader_text(struct json_reader *json);

/* A whole number in 0..2^63-1; -1 on failure. */
int64_t reader_whole(struct json_reader *json);

/* Whether nothing but white space is left, and nothing has failed. */
bool reader_end(struct json_reader *json);

#endif
