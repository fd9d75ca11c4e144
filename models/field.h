/*
 * Fields: tables of rows, each of which names a member of a struct and says what may be in it. The
 * options of the command line, the values of descriptions, what `softback info` prints and the
 * counters of checkpoints are read and written by such tables.
 */
#ifndef SOFTBACK_MODELS_FIELD_H
#define SOFTBACK_MODELS_FIELD_H

#include "models/model.h"
#include <stddef.h>

enum field_type {
    FIELD_NONE,   /* no value: a heading, or the rows of another table */
    FIELD_COUNT,  /* int64_t */
    FIELD_SMALL,  /* int */
    FIELD_SEED,   /* uint64_t */
    FIELD_NUMBER, /* double */
    FIELD_CHOICE, /* an enum */
    FIELD_FLAG,   /* bool */
    FIELD_TEXT,   /* char[FIELD_TEXT_SIZE]; what is given later is appended, after a separator */
    FIELD_WORDS,  /* const char *, a text that outlives the struct */
    FIELD_MARK,   /* uint64_t, a fingerprint in files */
    FIELD_OTHER,  /* known to `take`, or to the owner of the table */
};

/* The settings of a model and its training, as help shows them; 0 for other rows. */
enum field_group { FIELD_OF_MODEL = 1, FIELD_OF_TRAINING, FIELD_OF_DATA };

/* Bits of the `kind` of a setting. */
enum {
    SETTING_OF_FILES = 1, /* of data from files, not of built-in tasks */
    SETTING_OF_TASKS = 2,
    SETTING_OF_WORDS = 4,   /* it determines vocabularies, which with --from are the model's own */
    SETTING_MAY_CHANGE = 8, /* when a run is resumed */
};

/* What 0 is in a struct of options and in files: itself, or the default. Whoever gives a 0 means
   it: then it becomes SB_ZERO, "-0" in files, unless a default of 0 makes no sense. */
enum field_zero { ZERO_IS_ZERO, ZERO_IS_DEFAULT, ZERO_IS_DEFAULT_ALONE };

enum { FIELD_TEXT_SIZE = 512 }; /* the most bytes of a value as text, with the one that ends it */

#define MOST_SEED 9007199254740991.0 /* exact as a double, as JSON's numbers are */

/* A row. A table ends with a row that is 0. */
struct field {
    const char *name; /* "feed-forward"; NULL: no value */
    enum field_type type;
    size_t at; /* where the value is in the struct */
    const char *help;
    double least, most;         /* of a count, seed or number */
    enum field_group group;     /* of all rows, when this row has those of another table */
    enum field_zero zero;       /* of a number */
    const char *const *choices; /* of a choice, ended by NULL */
    const char *argument;       /* what help calls the value; NULL: N, X, WORD or none, by type */
    char separator;             /* of texts */
    unsigned kind;              /* bits for the owner of the table */
    const char *models; /* the kinds of models that have it: "seq2seq classifier"; NULL: all */
    const struct field *rows; /* those of the struct that is at `at`, instead of a value */
    /* Takes or checks a value that somebody gave, and says why it refuses one. */
    bool (*take)(const struct field *field, void *object, const char *text);
};

/* The first members of the row of a member, whose type gives that of the row, or of one that `take`
   writes. */
#define FIELD(owner, member) .type = FIELD_TYPE(((owner *)0)->member), .at = offsetof(owner, member)
#define TAKEN(owner, member, function)                                                             \
    .take = function, .type = FIELD_OTHER, .at = offsetof(owner, member)
#define FIELD_TYPE(value)                                                                          \
    _Generic((value), int64_t                                                                      \
             : FIELD_COUNT, int                                                                    \
             : FIELD_SMALL, uint64_t                                                               \
             : FIELD_SEED, double                                                                  \
             : FIELD_NUMBER, unsigned                                                              \
             : FIELD_CHOICE, bool                                                                  \
             : FIELD_FLAG, char *                                                                  \
             : FIELD_TEXT, const char *                                                            \
             : FIELD_WORDS)

/* The i-th row of a table and of those in it, with its place in the outer struct; past the last one
   it is 0. */
struct field field_at(const struct field *rows, int i);

/* Sets the value from text ("true" or "false" for a flag); the message names what was expected. */
bool field_write(const struct field *field, void *object, const char *text);

/* The same for a text that somebody gave: 0 is 0, and refused where it can only stand for the
   default. */
bool field_give(const struct field *field, void *object, const char *text);

/* The value as text; a number is restored to the same bits. */
struct field_text {
    char text[FIELD_TEXT_SIZE];
};
struct field_text field_read(const struct field *field, const void *object);

/* Whether a kind of models has the field. */
bool field_is_of(const struct field *field, const sb_model_kind *kind);

/* Copies the fields that a kind of models has to a description, and back; those
   that it lacks stay unchanged. */
bool fields_describe(const struct field *rows, const void *object, const sb_model_kind *kind,
                     sb_description *description);
bool fields_take(const struct field *rows, void *object, const sb_model_kind *kind,
                 const sb_description *description);

#endif
