/*
 * Units: the symbols that a text is split into before a model reads it (tokenisation).
 *
 *   characters  the code points of UTF-8
 *   bytes       the bytes of UTF-8; no text is ever unknown
 *   words       the strings between single spaces, the empty word included: "a  b" has three
 *   bpe         byte-pair merges that are learned from the training texts (see vocabulary.h)
 *   ids         numbers between spaces or line feeds, ids that another program's tokenizer has made
 */
#ifndef SOFTBACK_MODELS_TEXT_UNITS_H
#define SOFTBACK_MODELS_TEXT_UNITS_H

#include "../../tensor/error.h"
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SB_UNITS_AUTO, /* chosen from the texts by sb_units_detect */
    SB_UNITS_CHARACTERS,
    SB_UNITS_BYTES,
    SB_UNITS_WORDS,
    SB_UNITS_BPE,
    SB_UNITS_IDS,
} sb_units;

enum { SB_UNITS = 6 };

SB_API const char *sb_units_name(sb_units units);        /* "words" */
SB_API const char *sb_units_description(sb_units units); /* "words (cut at spaces)" */

/* The units of this name; fails, listing the names, when there are none. */
SB_API bool sb_units_find(const char *name, sb_units *units);

/*
 * Chooses the units for texts:
 *
 * - words, when the texts are tokens joined by single spaces (two or more to a text on average)
 * from a small closed set: at most 1,000 different ones, and less than one token in a hundred that
 * is empty or would be unknown in a new text. The share of unknown ones is estimated as the share
 * of tokens that occur just once (Good 1953, after Turing). Phonemes, digits and commands are such.
 * - otherwise bpe, when the texts are sentences too long to be read letter by letter: more than 64
 *   code points and at least 8 tokens on average.
 * - otherwise characters.
 *
 * Fails when there is no text, a text is not UTF-8, or there is no memory.
 */
SB_API bool sb_units_detect(const char *const *texts, int64_t count, sb_units *units);

#endif
