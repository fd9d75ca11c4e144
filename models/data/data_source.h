/* Internal functions of data. */
#ifndef SOFTBACK_MODELS_DATA_DATA_SOURCE_H
#define SOFTBACK_MODELS_DATA_DATA_SOURCE_H

#include "models/data/cursor.h"
#include "models/data/labelled.h"
#include "models/data/windows.h"

/* Pairs of texts, or texts with labels, encoded. */
struct sb_data {
    const struct data_kind *kind;
    sb_data_options options;
    sb_vocabulary *source, *target; /* of labelled texts: NULL */
    sb_labels *labels;              /* of labelled texts */
    struct cursor cursor;
    sb_task task; /* a built-in task, which has no pairs */
    sb_task_options task_options;
    int64_t pairs, left_out;
    sb_encoded_pair *pair;
    int64_t *label; /* of each labelled text */
};

struct sb_labelled {
    sb_data data;
};

/* How pairs become data. */
struct data_kind {
    struct cursor_items items;   /* of the sb_data */
    const char *things, *length; /* in messages: "pairs", "symbols on each side" */
    /* Encodes the next pair, which becomes number data->pairs unless it is too long. `pair` is all
       zero; what is in it after a failure is freed. */
    bool (*encode)(const sb_data *data, const char *source, const char *target,
                   sb_encoded_pair *pair);
};

/* Data of the pairs that are short enough; fails when none is. `target` or `labels` is NULL. */
sb_data *data_new(const struct data_kind *kind, const sb_pairs *pairs, sb_vocabulary *source,
                  sb_vocabulary *target, const sb_labels *labels, const sb_data_options *options);

/* For cursor_items: all pairs, the same in each epoch. */
const sb_encoded_pair *data_list(void *data, int64_t epoch, int64_t *count);

/* Labelled texts as data, to be freed as such; NULL for NULL. */
sb_data *labelled_data(sb_labelled *labelled);

/* The data of sb_data_as_source, sb_labelled_as_source or sb_windows_as_source; NULL, without a
   message, for other sources. */
sb_data *data_of_source(const sb_source *source);
sb_data *labelled_of_source(const sb_source *source);
const sb_windows *windows_of_source(const sb_source *source);

#endif
