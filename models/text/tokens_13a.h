/* The tokens of mteval-v13a, which BLEU counts. */
#ifndef SOFTBACK_MODELS_TEXT_TOKENS_13A_H
#define SOFTBACK_MODELS_TEXT_TOKENS_13A_H

#include "models/text/buffer.h"
#include "models/text/unit.h"

/*
 * Writes a text with spaces between its tokens into `tokens`, as sacreBLEU's Tokenizer13a does; the
 * former contents of both buffers are lost. False without memory.
 */
bool tokens_13a(const char *text, size_t size, struct buffer *tokens, struct buffer *scratch);

/* The token at *at, which moves past it; false at the end. Tokens stand between white space as
   Unicode, and Python, define it. */
bool token_next(const char *text, size_t size, size_t *at, struct unit *token);

#endif
