/*
 * Vocabularies: texts to ids and back.
 *
 * A text is UTF-8. It is cut into units (units.h), and each unit's symbol has an id. Four special
 * symbols come first; encoding never returns the first three, which are added when a batch is
 * made. A vocabulary of ids has no symbols of its own: see sb_vocabulary_of_ids.
 *
 * Decoding is the exact inverse of encoding for every text whose symbols are known. The vocabulary
 * depends on the training texts but not on their order.
 */
#ifndef SOFTBACK_MODELS_TEXT_VOCABULARY_H
#define SOFTBACK_MODELS_TEXT_VOCABULARY_H

#include "units.h"

typedef struct sb_vocabulary sb_vocabulary;

enum {
    SB_SYMBOL_PADDING = 0,
    SB_SYMBOL_BEGIN = 1,
    SB_SYMBOL_END = 2,
    SB_SYMBOL_UNKNOWN = 3,
    SB_SPECIAL_SYMBOLS = 4
};

typedef struct {
    sb_units units; /* 0: chosen from the texts */
    int64_t size;   /* the most ids, special ones included; 0: no limit, for bpe 8,000 */
} sb_vocabulary_options;

/*
 * Learns a vocabulary from `count` texts; options may be NULL.
 *
 * characters, words   the symbols that occur, in code-point order. Where `size` leaves too little
 *                     room, the most frequent are kept (of equally frequent ones the first).
 * bytes               all 256, whatever the texts; ids are byte + 4.
 * bpe                 the characters as above, then merges in the order in which they are learned
 *                     (Sennrich, Haddow and Birch 2016): repeatedly the most frequent pair of
 *                     neighbours becomes a symbol, until `size` is reached or no pair occurs twice.
 *                     Of equally frequent pairs the one with the smaller ids is taken. The paper
 *                     marks the end of each word; here each word carries the space before it (the
 *                     first word gets one too), so that the concatenated symbols are the text. A
 *                     line feed is a word of its own.
 *
 * The caller owns it. Fails when there are no texts, when one is NULL or not UTF-8, when no symbol
 * occurs, when the size is negative or below 5 (bytes: below 260), or without memory.
 */
SB_API sb_vocabulary *sb_vocabulary_new(const char *const *texts, int64_t count,
                                        const sb_vocabulary_options *options);

/*
 * The vocabulary of a model that another program's tokenizer serves, such as those of Hugging
 * Face's transformers: the ids below `size`, which texts have as numbers between spaces. A
 * decoder begins with the id `begin`, and `end` ends its outputs (-1: nothing does). Decoding never
 * chooses `padding` (-1: it may choose all). Nothing is put before other texts.
 *
 * sb_vocabulary_new with SB_UNITS_IDS makes one for the numbers that its texts have, followed by
 * begin and end.
 *
 * Fails when the size is not in 1..2^24, and when an id is not below it.
 */
SB_API sb_vocabulary *sb_vocabulary_of_ids(int64_t size, int32_t padding, int32_t begin,
                                           int32_t end);

/* One more owner, and one less. Vocabularies never change, so threads may share one. */
SB_API sb_vocabulary *sb_vocabulary_retain(sb_vocabulary *vocabulary);
SB_API void sb_vocabulary_release(sb_vocabulary *vocabulary);

SB_API int64_t sb_vocabulary_size(const sb_vocabulary *vocabulary); /* ids are below it; NULL: 0 */
/* Without the special symbols before them. */
SB_API int64_t sb_vocabulary_symbols(const sb_vocabulary *vocabulary);
SB_API sb_units sb_vocabulary_units(const sb_vocabulary *vocabulary);

/* The id of a special symbol, SB_SYMBOL_BEGIN for example; -1: the vocabulary has none. */
SB_API int32_t sb_vocabulary_special(const sb_vocabulary *vocabulary, int symbol);

/*
 * A symbol as a printable text, owned by the vocabulary: "<padding>", "<begin>", "<end>",
 * "<unknown>", or its text; a byte outside printable ASCII is "<0xC3>". A bpe symbol begins with a
 * space where a word begins. Fails when there is no such id.
 */
SB_API const char *sb_vocabulary_symbol(const sb_vocabulary *vocabulary, int32_t id);

/* The id of a symbol by its text as above, but never a special one; -1, without a message, when the
   vocabulary has none. */
SB_API int32_t sb_vocabulary_id(const sb_vocabulary *vocabulary, const char *symbol);

/* The units of an encoded text that are not in the vocabulary. */
typedef struct {
    int64_t count;            /* how many units became SB_SYMBOL_UNKNOWN */
    size_t first, first_size; /* the first of them: its bytes in the text */
} sb_unknown;

/*
 * The ids of a text: an array of *count, to be freed with sb_free (never NULL, even for "").
 * `unknown` may be NULL. Fails when the text is not UTF-8 (the message has the place of the first
 * bad byte, counted from 1) or without memory, and in a vocabulary of ids on what is no id.
 */
SB_API int32_t *sb_vocabulary_encode(const sb_vocabulary *vocabulary, const char *text,
                                     int64_t *count, sb_unknown *unknown);

/*
 * The text of ids, to be freed with sb_free. SB_SYMBOL_END ends it; padding and begin have no text,
 * and unknown is U+FFFD. It is always UTF-8: bytes that are not part of a character become
 * U+FFFD. Fails on an id that the vocabulary does not have, and without memory.
 */
SB_API char *sb_vocabulary_decode(const sb_vocabulary *vocabulary, const int32_t *ids,
                                  int64_t count);

#endif
