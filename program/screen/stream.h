/* Texts for a model from the standard input, and from a model to the standard output. */
#ifndef SOFTBACK_PROGRAM_SCREEN_STREAM_H
#define SOFTBACK_PROGRAM_SCREEN_STREAM_H

#include "models/text/lines.h"
#include "models/text/vocabulary.h"
#include <stdbool.h>

/* ---- lines of the standard input ---- */

#define INPUT "standard input"

bool input_begin(struct lines *lines);

/* Says on standard error why a command cannot answer a line. */
void input_refuse(int64_t number, const char *reason);

/* ---- symbols of a text outside a model's vocabulary, which reads each as <unknown> ---- */

/* How many there are; 0 also when the text cannot be encoded, as decoding reports that. */
int64_t unknown_count(const sb_vocabulary *vocabulary, const char *text);

/* Reports them on standard error with the first: "softback translate: standard input:3: ...";
   returns whether there are any. */
bool unknown_note(const char *where, const sb_vocabulary *vocabulary, const char *text);

/* ---- a text that is shown on standard output while its symbols are chosen ---- */

enum { STREAM_SYMBOLS = 8 };

struct stream {
    const sb_vocabulary *vocabulary;
    bool line;                  /* it is shown as one line */
    int32_t id[STREAM_SYMBOLS]; /* the last symbol that was shown, if any, and those that wait */
    int count, shown;           /* of these */
};

/* Shows the prompt, as one line if `line`, and begins after it. */
bool stream_begin(struct stream *stream, const sb_vocabulary *vocabulary, const char *prompt,
                  bool line);

/* Shows a symbol, once its bytes make whole characters; as `listen` of sb_decoding_options. */
bool stream_listen(void *stream, int64_t text, int32_t id);

/* Shows a text as it is, or as one line (foreign_line); on a terminal without what that would
   obey. */
void stream_print(const char *text, bool line);

/* Shows what still waits. */
bool stream_end(struct stream *stream);

#endif
