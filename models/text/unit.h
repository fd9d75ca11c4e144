/* Cutting texts into units. */
#ifndef SOFTBACK_MODELS_TEXT_UNIT_H
#define SOFTBACK_MODELS_TEXT_UNIT_H

#include "models/text/units.h"
#include "tensor/buffer.h"
#include <stddef.h>

struct unit {
    const char *text;
    size_t size;
};

/* The unit at *at, which moves past it; false at the end of the text. Units are characters, bytes,
   words or ids; the text is UTF-8. */
bool unit_next(sb_units units, const char *text, size_t size, size_t *at, struct unit *unit);

/* The units of this name; false, without a message, when there are none. */
bool units_named(const char *name, sb_units *units);

/* Checks a caller's text and sets its size; fails, with `who` in the message, when it is NULL, not
   UTF-8, or longer than 1 GiB. */
bool text_check(const char *who, const char *text, size_t *size);

/* ---- the tokens of mteval-v13a, which BLEU counts ---- */

/*
 * Writes a text with spaces between its tokens into `tokens`, as sacreBLEU's Tokenizer13a does; the
 * former contents of both buffers are lost. False without memory.
 */
bool tokens_13a(const char *text, size_t size, struct buffer *tokens, struct buffer *scratch);

/* The token at *at, which moves past it; false at the end. Tokens stand between white space as
   Unicode, and Python, define it. */
bool token_next(const char *text, size_t size, size_t *at, struct unit *token);

#endif
