/* Pairs that a model is trained and evaluated on: of files, or of a task. */
#ifndef SOFTBACK_PROGRAM_KINDS_PAIRS_H
#define SOFTBACK_PROGRAM_KINDS_PAIRS_H

#include "models/text/labels.h"
#include "models/text/pairs.h"
#include "program/run/kind.h"

/* The data of a kind that learns pairs, or their beginning; pairs_close frees them. */
struct pairs_data {
    sb_pairs *read;                 /* from the files; NULL with a task */
    sb_pairs *train;                /* of those, if others are held out, or of a task; else NULL */
    sb_pairs *held;                 /* evaluated on */
    sb_pairs *fitting;              /* of these, those that learned positions allow; NULL: all */
    sb_pairs *sample;               /* those of them that evaluations decode; NULL: all */
    sb_vocabulary *source, *target; /* target NULL: targets are labels */
    sb_labels *labels;
    sb_data *data, *held_data; /* encoded */
};

/* Those trained on; NULL: a task makes them. */
const sb_pairs *pairs_to_train(const struct pairs_data *pairs);

/* Those held out that can be decoded. */
const sb_pairs *pairs_to_decode(const struct pairs_data *pairs);

/* The most symbols of a text, which learned positions allow, too, beside the one that begins it. */
int64_t pairs_longest(const struct training *training);

/* Prints what was read, and how many pairs were left out, longer than `longest` on a side. */
void pairs_describe_files(const struct pairs_data *pairs, const struct training_request *request,
                          int64_t left_out, int64_t longest, FILE *out);

/* How many symbols of n texts a vocabulary lacks. */
int64_t pairs_unknown(const sb_vocabulary *vocabulary, const char *const *texts, int64_t n);

/* Reads the pairs of files, and those to evaluate on, or holds some out; a task has made its own.
   Sets the hash of all, so that a resumed run notices other data. */
bool pairs_open(struct training *training);

/* Encodes those held out, and those trained on, unless a task has: the sources of batches. Pairs
   longer than pairs_longest on a side are left out. */
bool pairs_encode(struct training *training);

/* Functions of all kinds that learn pairs (program/run/kind.h). */
void pairs_close(struct training *training);
bool pairs_watch(struct training *training);

#endif
