/*
 * The report on a model: one file of HTML, which a browser shows without scripts and without any
 * other file. Curves of its training, if there is a log; its attention on one text; the gradient
 * check and the tape of that text's loss; what it gets wrong. And a page that compares runs, and
 * pictures alone: files of SVG, legible on light and dark pages.
 */
#ifndef SOFTBACK_TEACH_REPORT_REPORT_H
#define SOFTBACK_TEACH_REPORT_REPORT_H

#include "models/text/pairs.h"
#include "models/training/checkpoint.h"
#include "teach/explain/model.h"
#include "teach/explain/row.h"
#include "teach/report/html.h"
#include "teach/report/run_log.h"

struct report {
    const struct checkpoint *checkpoint;
    const struct subject *subject; /* the checkpoint's model on a text */
    const char *title, *text;
    const char *expected; /* the output for the text; NULL: unknown, where no pair has it */
    const char *name, *trained_on; /* of the model; its training data, a file, or NULL */
    const char *valid;             /* beside `trained_on`: the file it was evaluated on, or NULL */
    bool text_given, target_given; /* by the user: refused where they are too long to be drawn */
    const struct run_log *log;
    const sb_pairs *pairs; /* held out, to show what the model gets wrong; NULL: none */
    const char *pairs_are; /* what they are: "test texts of the task" */
    uint64_t data_hash;    /* of the training data; 0: unknown */
};

/* What only the report on one kind of model has; functions but `begin` may be NULL. */
struct report_kind {
    const char *title, *outputs; /* "A classifier", and what it chooses from: "labels" */
    /* What the model does with `pairs`: an object of `size` bytes, zeroed, for the functions below.
     */
    size_t size;
    bool (*find)(void *found, const struct report *report);
    void (*forget)(void *found); /* also after a failure */
    bool (*begin)(struct html *html, const struct report *report, const void *found);
    void (*curves)(struct html *html, const struct report *report);
    /* Begins a part where there are errors to be shown. */
    bool (*errors)(struct html *html, const struct report *report, const void *found);
};

extern const struct report_kind report_pairs, report_language, report_classifier;

/* Adds whether the run is good, and what to do next; `labels`: it chooses one for a whole text.
   `pattern` is what its errors have in common, as HTML, or "". */
bool verdict_add(struct html *html, const struct report *report, bool labels, const char *pattern);
/* Whether the run failed: it is hardly better than guessing, unstable or stuck. */
bool verdict_is_bad(const struct report *report, bool labels);
/* The share of all heads' rows that are saturated at the last diagnosis. */
double saturated_at_end(const struct run_log *log);
/* Adds the command that trains with the settings of the run, or with others that `next` has (NULL:
   its own): to a new file, or it resumes the run. */
bool report_command(struct html *html, const struct report *report, const struct settings *next,
                    bool resumes);

/*
 * ---- backward against central differences: the loss of one text, by elements of every parameter
 * ----
 *
 * Backward runs in float32, as in training. The differences are those of a float64 copy of the
 * model: in float32 the loss itself is rounded too much, which the table shows in its last column.
 * That copy is also checked exactly, to the second order.
 */

/* An element of a parameter, backward of which is also known in float64, and how large gradients
   are around it. */
struct checked {
    double backward, exact, difference;
    double largest_here, largest; /* of the parameter's gradient, and of all */
};

enum check_word {
    CHECK_AGREES,
    CHECK_ZERO,
    CHECK_ROUNDING,
    CHECK_COARSE,
    CHECK_DIFFERS,
    CHECK_WORDS
};

/* The difference of the two, relative to the largest gradient of the parameter. */
double check_error(const struct checked *c);
enum check_word check_word(const struct checked *c);

/* Checks the element of each parameter with the largest gradient, and two fixed ones. */
bool check_add(struct html *html, const struct subject *subject);

/* ---- what is inside a model over time: the gradients of its parameters, and its heads ---- */

/* Values in rows and columns: a shaded table. */
struct strip {
    const char *title, *text; /* text: what the shades mean */
    double (*value)(const struct run_log *run, int64_t row, int64_t column);
    enum run_numbers of; /* without a function: these of the run's diagnoses */
    const struct run_log *run;
    int64_t columns;
    const char *const *column_names; /* NULL: the columns are the run's diagnoses */
    int64_t rows;
    const char *(*name)(const void *names, int64_t row); /* lives until the next call */
    const void *names;
    const sb_parameters *weights; /* or, if given, the rows are parameters */
    bool logarithmic; /* shades are of the logarithm, over four powers of ten below the largest */
};

/* Parameters have a row for each part of a model, and, folded, one for each of them; logarithmic
   values are norms, others are shares of a parameter's elements. */
void strip_add(struct html *html, const struct strip *strip);

/* Strips of the diagnoses in a log; nothing where there are none. Fails where they are those of
   another model than the weights and the example are of. In a run that failed, saturated rows are
   called a fault. */
bool inside_add(struct html *html, const struct run_log *run, const sb_parameters *weights,
                const sb_example *example, bool failed);

/* ---- the page ---- */

/* Begins the next part of a page, which the script turns into a tab. */
void report_part(struct html *html, const char *name);

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. */
char *report_page(const struct report *report, const struct report_kind *kind);

/* 8.25 -> "8.2 s", 83 -> "1:23 min", 4983 -> "1:23:03 h". */
struct time_text {
    char text[32];
};
struct time_text report_time(double seconds);

/* One setting of a description as a text, or its default. */
const char *report_setting(const struct checkpoint *checkpoint, const sb_description *description,
                           int i, struct field_text *room);

/* ---- runs side by side: what they reach, their curves, and the settings that differ ---- */

/* What a run was trained on: the kind of model, and its data, all of them and the held-out ones:
   "task copy", or their hash, or "": unknown. */
enum { TRAINED_KIND, TRAINED_DATA, TRAINED_HELD, TRAINED_ON };

/* What is kept of a run; its model is not. */
struct compared {
    char *name;
    char *trained_on[TRAINED_ON];
    struct run_log log;
    struct run_end end;
    int64_t weights;
    char *setting[MOST_SETTINGS]; /* each as a text */
};

/* Reads a run, of any kind of model, from its files; the hashes are of its data and the held-out
   ones, 0: unknown. To be closed in any case. */
bool compared_open(struct compared *run, const char *name, const char *model, const char *log,
                   uint64_t data_hash, uint64_t held_hash);
void compared_close(struct compared *run);

/* The best first: by exact texts, then by held-out loss, then by the training loss at the end. */
void compare_sort(int64_t n, struct compared runs[]);

/* The page as a text for memory_free; NULL, with a message, when it cannot be made. It names the
   best run where all have the same held-out data. Curves are only those of the first runs, as many
   as a chart has. */
char *compare_page(const char *title, int64_t n, const struct compared runs[]);

/* Pictures of a model's report. */
enum figure { NO_FIGURE, FIGURE_ATTENTION, FIGURE_ALIGNMENT, FIGURE_LOSS };

/* NO_FIGURE, with a message, when there is none of that name. */
enum figure figure_named(const char *name);

/* Texts for memory_free; NULL, with a message, when one cannot be made. */
char *figure_svg(enum figure figure, const struct subject *subject, const struct run_log *log);
/* The Jacobian of a row of softmax. */
char *jacobian_svg(const struct row *row);

#endif
