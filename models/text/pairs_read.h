/* Reading pairs from lines of any source. */
#ifndef SOFTBACK_MODELS_TEXT_PAIRS_READ_H
#define SOFTBACK_MODELS_TEXT_PAIRS_READ_H

#include "models/text/lines.h"
#include "models/text/pairs.h"

/* A source of lines and its name. */
struct pairs_file {
    const char *name;
    lines_source *source;
    void *from;
};

/* Reads TSV from one file, or from two when `targets` is not NULL. */
sb_pairs *pairs_read(const char *who, struct pairs_file sources, const struct pairs_file *targets,
                     const sb_pairs_options *options);

/* Counts a malformed line and keeps its message while there is room. */
bool pairs_skip(sb_pairs *pairs, const char *problem);

/* Adds parts of lines that have been checked. */
bool pairs_add(sb_pairs *pairs, const char *source, size_t source_size, const char *target,
               size_t target_size);

#endif
