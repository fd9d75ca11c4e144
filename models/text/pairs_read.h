/* Reading pairs from lines, of files or of memory. */
#ifndef SOFTBACK_MODELS_TEXT_PAIRS_READ_H
#define SOFTBACK_MODELS_TEXT_PAIRS_READ_H

#include "models/text/lines.h"
#include "models/text/pairs.h"

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
