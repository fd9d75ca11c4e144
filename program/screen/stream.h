/* A text that is shown on standard output while its symbols are chosen. */
#ifndef SOFTBACK_PROGRAM_SCREEN_STREAM_H
#define SOFTBACK_PROGRAM_SCREEN_STREAM_H

#include "models/text/vocabulary.h"
#include <stdbool.h>

enum { STREAM_SYMBOLS = 8 };

struct stream {
    const sb_vocabulary *vocabulary;
    int32_t id[STREAM_SYMBOLS]; /* the last symbol that was shown, if any, and those that wait */
    int count, shown;           /* of these */
};

/* Begins behind a prompt, which is shown by somebody else. */
bool stream_begin(struct stream *stream, const sb_vocabulary *vocabulary, const char *prompt);

/* Shows a symbol, once its bytes make whole characters; as `listen` of sb_decoding_options. */
bool stream_listen(void *stream, int64_t text, int32_t id);

/* Shows a text as it is; on a terminal without what that would obey. */
void stream_print(const char *text);

/* Shows what still waits. */
bool stream_end(struct stream *stream);

#endif
