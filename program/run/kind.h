/*
 * The kinds of models that the program trains, chosen by --model: what each learns from, and what
 * it says of itself, beyond what models/model.h knows of it.
 */
#ifndef SOFTBACK_PROGRAM_RUN_KIND_H
#define SOFTBACK_PROGRAM_RUN_KIND_H

#include "program/run/training.h"
#include "teach/report/report.h"
#include <jansson.h>

struct buffer;

/* What softback evaluate asks for. */
struct evaluate_request {
    sb_decoding_options decoding;
    const char *data, *task, *path, *base;
    int64_t count, show;
    bool json;
};

struct training_kind {
    const char *title;          /* "a language model" */
    const char *trained;        /* in help, after its name: "a language model on texts" */
    const char *file;           /* and what is in a file of --data: "lines of text, tab, label" */
    const char *items;          /* what a batch has: "windows" */
    const sb_model_kind *model; /* its functions */
    bool several_files;         /* --data may be given more than once */
    bool two_files;             /* --source-file and --target-file may be given instead */
    const char *task; /* a built-in task of this kind alone; "": none; NULL: those of pairs */

    size_t data_size; /* bytes of training->data, which are 0 at first */
    /* Opens what it is trained on, sets the hash of the data, and the sources of batches with what
       `struct training` has of them. */
    bool (*open_texts)(struct training *training);
    bool (*open_data)(struct training *training);
    /* A new model for these data; its `self` is NULL after a failure. */
    sb_model (*make)(const struct training *training);
    void (*close)(struct training *training);
    /* Prints what of the texts a model of --from does not know; may be NULL. */
    void (*describe_unknown)(const struct training *training, FILE *out);

    void (*describe)(const struct training *training, FILE *out);
    unsigned scores; /* by which its best model can be chosen: bits 1 << BEST_LOSS and so on */
    /* What an evaluation shows beside its loss, with as many digits as asked for: "", or ", " and
       more. */
    void (*measure)(const struct training *training, const sb_evaluation *evaluation, int digits,
                    char *text, size_t size);
    /* Adds the texts of an item of a batch in the host's memory. */
    bool (*add_item)(struct buffer *buffer, const struct training *training, const sb_batch *batch,
                     int64_t item);
    /* Measures a model, and prints what it finds, or makes it an object; *json was NULL. */
    bool (*evaluate)(const struct evaluate_request *request, const struct checkpoint *checkpoint,
                     json_t **json);
    /* Pairs of a part of a built-in task that it learns in pairs; NULL: it has none. */
    sb_pairs *(*task_pairs)(const char *task, const struct settings *settings, sb_part part,
                            int64_t count);
    /* For --report: makes the watched batch and the text to draw; none where no held-out text is
       short enough. */
    bool (*watch)(struct training *training);
    const struct report_kind *report;
};

/* One for each word in `models` of models/meson.build, defined in program/kinds/<name>.c. */
#define TRAINING_KIND(name) extern const struct training_kind training_##name;
MODELS(TRAINING_KIND)
#undef TRAINING_KIND

/* For add_item: adds the text of an item's symbols, `ids` of a batch, whose number is `lengths`. */
bool bad_batch_add_text(struct buffer *buffer, const sb_vocabulary *vocabulary,
                        const sb_batch *batch, const char *ids, const char *lengths, int64_t item);

/* The i-th kind; NULL past the last. */
const struct training_kind *training_kind_at(int i);

/* The kind of a name; NULL, without a message, where there is none. */
const struct training_kind *training_kind_find(const char *name);
/* That of a loaded model, which is of the library's kinds; whether it is the expected one. */
const struct training_kind *training_kind_of(const struct checkpoint *checkpoint);
bool training_kind_check(const struct checkpoint *checkpoint, const char *path,
                         const struct training_kind *expected);

/* The kind that alone has this built-in task (NULL: any); NULL if there is none. */
const struct training_kind *training_kind_of_task(const char *task);
/* Checks the value of --task: a task of pairs, or of one kind alone. */
bool training_take_task(const struct field *field, void *request, const char *value);

/* `count` pairs of a part of a built-in task; NULL, with a message, on failure. */
sb_pairs *task_pairs(const char *task, const struct settings *settings, sb_part part,
                     int64_t count);

#endif
