/* A text that is shown on standard output while its symbols are chosen. */
#ifndef SOFTBACK_PROGRAM_SCREEN_STREAM_H
#define SOFTBACK_PROGRAM_SCREEN_STREAM_H

#include "models/text/vocabulary.h"
#include <stdbool.h>

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
