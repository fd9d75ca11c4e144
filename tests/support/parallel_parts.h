/* What tests/support/parallel_run.h trains: a small model of any kind, with data for it. */
#ifndef SOFTBACK_TESTS_SUPPORT_PARALLEL_PARTS_H
#define SOFTBACK_TESTS_SUPPORT_PARALLEL_PARTS_H

#include "models/data/windows.h"
#include "models/training/settings.h"

struct parallel_parts {
    sb_vocabulary *vocabulary;
    sb_data *data;
    sb_windows *windows;
    sb_labelled *labelled;
    sb_source source; /* one of these */
    sb_parameters *weights;
    sb_model model;
    sb_trainer *trainer;
};

/* kind: NULL or "seq2seq", an encoder-decoder that learns pairs, or to reverse digits without any;
   "language_model", windows of a made text; "classifier", which letter a text begins with. Close
   it even when this fails. */
bool parallel_parts_open(struct parallel_parts *p, const char *kind,
                         const struct settings *settings, const sb_pairs *pairs, sb_dtype dtype);
void parallel_parts_close(struct parallel_parts *p);

#endif
