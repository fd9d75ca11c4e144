/* Pairs that a model is trained and evaluated on: of files, or of a task. */
#ifndef SOFTBACK_PROGRAM_KINDS_PAIRS_H
#define SOFTBACK_PROGRAM_KINDS_PAIRS_H

#include "models/text/pairs.h"
#include "program/run/training.h"

struct divided_pairs {
    sb_pairs *read;  /* from the files; NULL with a task */
    sb_pairs *train; /* of those, if others are held out; else NULL */
    sb_pairs *held;  /* evaluated on */
};

/* Reads the pairs of files, and those to evaluate on, or holds some out. */
bool pairs_open(struct divided_pairs *pairs, const struct training_request *request);
void pairs_close(struct divided_pairs *pairs);

/* Those trained on; NULL: a task makes them. */
const sb_pairs *pairs_to_train(const struct divided_pairs *pairs);

/* A number that changes with all of them, so that a resumed run notices other data. */
uint64_t pairs_mark(const struct divided_pairs *pairs);

/* Prints what was read, and how many pairs were left out, longer than `longest` on a side. */
void pairs_describe(const struct divided_pairs *pairs, const struct training_request *request,
                    int64_t left_out, int64_t longest, FILE *out);

/* For --report: the numbers of held-out pairs that are short enough to draw, up to `most`; how
   many; and takes the source of one of them as the text that is drawn. */
int64_t pairs_short(const struct divided_pairs *pairs, int64_t most, int64_t index[]);
bool pairs_choose_drawn(const struct divided_pairs *pairs, int64_t index,
                        struct training *training);

#endif
