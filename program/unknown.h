/* Symbols of a text that a model does not know: it reads each as <unknown>. */
#ifndef SOFTBACK_PROGRAM_UNKNOWN_H
#define SOFTBACK_PROGRAM_UNKNOWN_H

#include "models/text/vocabulary.h"

/* How many there are; 0 also when the text cannot be encoded, as decoding it will tell. */
int64_t unknown_count(const sb_vocabulary *vocabulary, const char *text);

/* Says so on standard error, naming the first: "softback translate: standard input:3: ..."; returns
   whether there are any. */
bool unknown_note(const char *command, const char *where, const sb_vocabulary *vocabulary,
                  const char *text);

#endif
