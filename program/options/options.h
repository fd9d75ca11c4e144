/*
 * The options and arguments of a command: a table of rows, each bound to where its value goes. From
 * it come parsing, help, ranges, and suggestions for names that do not exist.
 */
#ifndef SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H
#define SOFTBACK_PROGRAM_OPTIONS_OPTIONS_H

#include "models/training/settings.h"
#include "program/screen/command.h"

enum { MOST_OPTIONS = 128 };

struct command_option {
    struct field field;   /* its name, help and, for a number, word or flag, where it goes */
    void *object;         /* in this struct */
    const char *argument; /* what help calls its value; NULL: it takes none */
    const char **text;    /* where the value goes as it is; NULL: nowhere */
    /* Takes it instead, or checks it; false, with a message, when the value is refused. */
    bool (*take)(struct command_option *option, const char *value);
    void *to;      /* for `take` */
    int group;     /* in help */
    unsigned kind; /* bits of the command, for options_given */
    bool given;    /* on the command line */
    bool *note;    /* where that is noted too, or NULL */
    int refusal;   /* the exit code when its value is refused */
};

struct options {
    const struct command *command;
    int argc;
    char **argv;
    unsigned kind; /* of the options that are added next */
    int group, count;
    struct command_option at[MOST_OPTIONS];
    const char **argument[2];
    const char *excess; /* what to do about an argument too many; NULL: nothing is said */
    char ***rest;
    int *rest_count;
    const struct command_option *refused; /* while parsing */
};

/* ---- rows: each function adds one and returns it ---- */

struct command_option *option_flag(struct options *o, const char *name, bool *flag,
                                   const char *help);
struct command_option *option_text(struct options *o, const char *name, const char *argument,
                                   const char **text, const char *help);
struct command_option *option_count(struct options *o, const char *name, int64_t *count,
                                    double least, double most, const char *help);
struct command_option *option_number(struct options *o, const char *name, double *number,
                                     double least, double most, const char *help);
struct command_option *option_seed(struct options *o, const char *name, uint64_t *seed,
                                   const char *help);
struct command_option *option_choice(struct options *o, const char *name, unsigned *choice,
                                     const char *const *choices, const char *help);
/* A built-in task by its name, or `other`, unless that is NULL. */
struct command_option *option_task(struct options *o, const char **task, const char *other,
                                   const char *help);
/* "--kind", an attention by its name: "cross", "encoder" or "decoder". */
struct command_option *option_attention(struct options *o, const char **attention,
                                        const char *help);
/* What `take` makes of its value. */
struct command_option *option_take(struct options *o, const char *name, const char *argument,
                                   bool (*take)(struct command_option *option, const char *value),
                                   void *to, const char *help);
/* One for each setting, below a heading for each group; given[i]: whether setting i is given. */
void options_of_settings(struct options *o, struct settings *settings, bool given[]);

/* The options that are added next stand apart in help, below a heading unless that is NULL. */
void option_group(struct options *o, const char *heading);

/* The arguments: up to two texts (second NULL: one; both: none); `excess` is what to do about more:
   "give one model". options_rest: all that follow, instead. */
void options_arguments(struct options *o, const char **first, const char **second,
                       const char *excess);
void options_rest(struct options *o, char ***rest, int *count);

/* ---- reading the command line ---- */

/* Returns -1 to continue, else the exit code. --help and --usage end the program. */
int options_read(struct options *options);

/* Whether an option is given; the first given one with a bit in `kind`, NULL for none. */
bool option_given(const struct options *options, const char *name);
const char *options_given(const struct options *options, unsigned kind);

#endif
