/* Symbols of a text outside a model's vocabulary, which reads each as <unknown>. */
#ifndef SOFTBACK_PROGRAM_SCREEN_UNKNOWN_H
#define SOFTBACK_PROGRAM_SCREEN_UNKNOWN_H

#include "models/text/vocabulary.h"

/* How many there are; 0 also when the text cannot be encoded, as decoding reports that. */
int64_t unknown_count(const sb_vocabulary *vocabulary, const char *text);

/* Reports them on standard error with the first: "softback translate: standard input:3: ...";
   returns whether there are any. */
bool unknown_note(const char *command, const char *where, const sb_vocabulary *vocabulary,
                  const char *text);

#endif
