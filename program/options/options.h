/*
 * The options and arguments of a command, read by the rows of its table (models/field.h). From the
 * rows come parsing, help, ranges, and suggestions for names that do not exist.
 */
#ifndef SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H
#define SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H

#include "models/decoding/decoding.h"
#include "models/training/settings.h"

/* ---- a command of the program: `softback train`, `softback translate`, ... ---- */

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options;
struct command {
    const char *summary;   /* one line for `softback --help` */
    const char *arguments; /* after the options in its usage: "MODEL [TEXT...]"; a line each way */
    const char *help;      /* above the options in its help; what follows a \v is below them */
    const struct field *fields;           /* its options: members of the request that `run` reads */
    bool (*run)(struct options *options); /* false when it has failed, and said why */
};

/* Prints "softback <command>: <sb_error()>" to standard error; returns false. */
bool command_failed(void);
/* The same for a mistake in the command line, with a hint at --help; the exit code is EXIT_USAGE.
 */
bool command_misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code of a command that has failed. */
int command_code(void);

/* ---- its options and arguments ---- */

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
};

/* The name of a row whose member takes the next argument; its help is what to do about more: "give
   one model". The last row may be of all other arguments. */
#define ARGUMENT ""
#define ARGUMENTS(owner, member) ARGUMENT, .type = FIELD_OTHER, .at = offsetof(owner, member)
struct texts {
    char **text;
    int count;
};

/* Whether there are no texts, or a word is one of them. */
bool texts_want(const struct texts *texts, const char *word);

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

/* Writes what is given into the command's request. False if the command cannot run, when it is said
   why. --help and --usage end the program. */
bool options_read(struct options *options, void *request);

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

/* ---- a name for a misspelt one ---- */

struct nearest_text {
    char text[128];
};

/* "; did you mean BEFORE name AFTER?", with the one of name(list, 0), name(list, 1), ... up to a
   NULL that has the least edit distance; "" when none is near. */
struct nearest_text nearest_name(const char *word, const char *(*name)(const void *list, int i),
                                 const void *list, const char *before, const char *after);

#endif
