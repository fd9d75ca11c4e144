/* The subject of pages on a stored model: the model, and one text with its translation. */
#ifndef SOFTBACK_TEACH_EXPLAIN_SUBJECT_H
#define SOFTBACK_TEACH_EXPLAIN_SUBJECT_H

#include "models/data/batch.h"
#include "models/training/checkpoint.h"

struct subject {
    struct checkpoint *checkpoint; /* NULL: the model is the caller's */
    const sb_seq2seq *model;
    char *target;          /* the model's translation, or the given one */
    int32_t *source;       /* the text's symbols */
    int32_t *said, *heard; /* the target's, with end appended, and with beginning first */
    sb_encoded_pair pair;
    sb_batch *batch; /* of this pair alone */
};

/* Encodes the pair; `target` NULL stands for the model's own translation. */
bool subject_begin(struct subject *subject, const sb_seq2seq *model, const char *text,
                   const char *target);
void subject_end(struct subject *subject);
/* The same for a stored model, which the subject owns. */
bool subject_open(struct subject *subject, const char *path, const char *text, const char *target);
void subject_close(struct subject *subject);

enum attention_kind { CROSS_ATTENTION, ENCODER_ATTENTION, DECODER_ATTENTION };

/* How many layers with this attention the model has. */
int subject_layers(const struct subject *subject, enum attention_kind kind);

/* The symbols of an axis: those that attend, or those that are attended to. */
struct subject_axis {
    sb_vocabulary *vocabulary;
    const int32_t *ids;
    int64_t length;
};
struct subject_axis subject_queries(const struct subject *subject, enum attention_kind kind);
struct subject_axis subject_keys(const struct subject *subject, enum attention_kind kind);

/* A symbol as shown: spaces are visible, control characters are replaced. */
struct subject_label {
    char text[256];
};
struct subject_label subject_label(const struct subject_axis *axis, int64_t i);

#endif
