/* Texts with labels, of which models learn that have labels for their heads: one for each text, or,
   with tags, one for each symbol of it. A kind's `learned` begins with struct learned_labels. */
#ifndef SOFTBACK_PROGRAM_KINDS_LABELLED_H
#define SOFTBACK_PROGRAM_KINDS_LABELLED_H

#include "models/text/buffer.h"
#include "models/text_model.h"
#include "program/kinds/pairs.h"

struct learned_labels {
    struct learned_pairs pairs;
    sb_vocabulary *vocabulary;
    sb_labels *labels;
    sb_labelled *data, *held_data;
};

/* Reads the files, and sets the hash of the data. */
bool labelled_open_texts(struct training *training, const struct training_request *request);
/* Learns labels and, unless a model is resumed, the vocabulary; sets the sources of batches. */
bool labelled_open_data(struct training *training, bool tags);
/* The labels, for memory_free; NULL, with a message, on failure. */
const char **labelled_texts(const struct training *training);

/* Functions of their kinds, see program/run/kind.h. */
void labelled_close(struct training *training);
int64_t labelled_batch_items(const struct training *training);
int64_t labelled_epoch_batches(const struct training *training);
void labelled_describe(const struct training *training, const struct training_request *request,
                       FILE *out);
best_score labelled_best(const struct training *training);
void labelled_measure(const struct training *training, const sb_evaluation *evaluation, int digits,
                      char *text, size_t size);
char *labelled_batch_text(const struct training *training, const sb_batch *batch);
char *labelled_report_text(const struct training *training);

/* Adds text b of a batch, a tab, and its label, or the labels of its symbols. */
bool labelled_line(struct buffer *to, const struct text_model *model, const sb_batch *batch,
                   int64_t b);

#endif
