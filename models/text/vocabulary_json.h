/*
 * Vocabularies as JSON, as checkpoints store them:
 *
 *   {"units": "bpe", "symbols": [" ", "a", "b", "ab", "aba"], "merges": [5, 6, 7, 5]}
 *
 * Symbols are those with ids from 4 on, in order; each merge, two ids, makes one of the last
 * symbols. "bytes" has neither, the others have no merges.
 */
#ifndef SOFTBACK_MODELS_TEXT_VOCABULARY_JSON_H
#define SOFTBACK_MODELS_TEXT_VOCABULARY_JSON_H

#include "models/text/vocabulary.h"
#include <jansson.h>

/* A new reference, for json_decref. */
json_t *vocabulary_to_json(const sb_vocabulary *vocabulary);

/*
 * Reads the result of vocabulary_to_json and checks all of it, as it may be untrusted: types,
 * known units, no symbol twice, none that is empty (except as a word) or not UTF-8 or not one unit,
 * and merges of earlier symbols only whose texts join up. Other members are ignored. The caller
 * owns the vocabulary and keeps `json`.
 */
sb_vocabulary *vocabulary_from_json(const json_t *json);

#endif
