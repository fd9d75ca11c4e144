/*
 * Lines of text from any source, and pairs from them. LF or CRLF ends a line and is not part of it;
 * the last line may lack it, and a byte-order mark at the start is skipped. Of a line that is too
 * long only the length is kept, so untrusted input cannot exhaust memory.
 */
#ifndef SOFTBACK_MODELS_TEXT_LINES_H
#define SOFTBACK_MODELS_TEXT_LINES_H

#include "models/text/pairs.h"
#include "tensor/buffer.h"
#include <stdint.h>

/* Puts up to `room` bytes into `bytes` and returns their number: 0 at the end, -1 on a failure,
   which it reports with sb_fail. */
typedef int64_t lines_source(void *from, char *bytes, size_t room);

struct lines {
    const char *name; /* of the source, for messages */
    int64_t number;   /* of the current line, from 1 */
    const char *text; /* the current line; a NUL follows it */
    size_t size;      /* its bytes, of which only some are in `text` when it is too long */
    bool too_long;    /* longer than the limit */

    size_t limit;
    lines_source *source;
    void *from;
    struct buffer line;
    char *chunk;
    size_t at, filled;
    bool ended;
};

/* Begins to read; `limit` is the longest line in bytes. */
bool lines_begin(struct lines *lines, const char *name, size_t limit, lines_source *source,
                 void *from);

/* Reads the next line; *more is false at the end. Returns false on a failure. */
bool lines_next(struct lines *lines, bool *more);

/* Why the current line is no text: too long, or a byte that is NUL or not UTF-8. "": it is one. */
struct lines_problem {
    char text[96];
};
struct lines_problem lines_problem(const struct lines *lines);

void lines_end(struct lines *lines);

/* ---- pairs.c ---- */

/* Lines and their name. */
struct pairs_file {
    const char *name;
    lines_source *source;
    void *from;
};

/* Reads TSV from one file, or from two when `targets` is not NULL. */
sb_pairs *pairs_read(const char *who, struct pairs_file sources, const struct pairs_file *targets,
                     const sb_pairs_options *options);

#endif
