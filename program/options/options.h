/*
 * The options and arguments of a command, read by the rows of its table (models/field.h). From the
 * rows come parsing, help, ranges, and suggestions for names that do not exist.
 */
#ifndef SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H
#define SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H

#include "models/decoding/decoding.h"
#include "models/training/settings.h"
#include "program/screen/command.h"

enum { MOST_OPTIONS = 128 };

struct options {
    const struct command *command;
    int argc;
    char **argv;
    int count;
    struct field at[MOST_OPTIONS]; /* the rows of the command, and of the tables in them */
    int group[MOST_OPTIONS];       /* in help */
    bool given[MOST_OPTIONS];      /* on the command line */
    void *request;                 /* which the rows describe */
    const char **argument[2];
    const char *excess; /* what to do about an argument too many; NULL: nothing is said */
    char ***rest;
    int *rest_count;
    bool refused; /* a value, while parsing */
};

/* A row that stands apart in help with those that follow it, below a heading unless that is "". */
#define HEADING(text) .help = text

/* ---- for `take` of rows ---- */

/* A built-in task by its name. option_is_task: or `other`, unless that is NULL. */
bool option_take_task(const struct field *field, void *request, const char *value);
bool option_is_task(const char *value, const char *other);
/* "--kind", an attention by its name: "cross", "encoder" or "decoder". */
bool option_take_attention(const struct field *field, void *request, const char *value);
/* Refuses a value that is right, because this machine lacks what it names: the exit code is
   EXIT_FAILED. The message is there already. */
bool option_unavailable(void);

/* ---- reading the command line ---- */

/* The arguments: up to two texts (second NULL: one; both: none); `excess` is what to do about more:
   "give one model". options_rest: all that follow, instead. */
void options_arguments(struct options *o, const char **first, const char **second,
                       const char *excess);
void options_rest(struct options *o, char ***rest, int *count);

/* Writes what is given into the command's request. Returns -1 to continue, else the exit code.
   --help and --usage end the program. */
int options_read(struct options *options, void *request);

/* Whether an option is given; the first given one with a bit in `kind`, NULL for none. */
bool option_given(const struct options *options, const char *name);
const char *options_given(const struct options *options, unsigned kind);

/* ---- machine.c: options that several commands share ---- */

/* --threads alone, and both; they take effect at once. */
extern const struct field threads_fields[], machine_fields[];

/* Prints a device: "cpu     AVX-512 kernels, 2 threads, ...". */
void machine_print_cpu(void);
void machine_print_cuda(void);

/* ---- decoding.c: the options of commands that decode with a stored model ---- */

enum { OF_SAMPLING = 1 }; /* the kind of the rows of sampling */

/* Of sb_decoding_options: --weights; --temperature, --top-k, --top-p and --seed; those that
   translate and evaluate share, and --threads and --device. */
extern const struct field weights_fields[], sampling_fields[], decoding_fields[];

/* --base, for a model that may be a file of LoRA adapters. */
#define BASE_FIELD(owner)                                                                          \
    "base", FIELD(owner, base), "for a file of LoRA adapters: the model that they are for",        \
        .argument = "FILE"

/* ---- nearest.c: a name for a misspelt one ---- */

/* The one of name(list, 0), name(list, 1), ... up to a NULL with the least edit distance; NULL when
   none is near. */
const char *nearest_word(const char *word, const char *(*name)(const void *list, int i),
                         const void *list);

#endif
