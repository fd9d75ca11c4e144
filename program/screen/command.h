/* A command of the program: `softback train`, `softback translate`, ... */
#ifndef SOFTBACK_PROGRAM_SCREEN_COMMAND_H
#define SOFTBACK_PROGRAM_SCREEN_COMMAND_H

#include "models/field.h"
#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options; /* program/options/options.h */

struct command {
    const char *name;
    const char *summary;   /* one line for `softback --help` */
    const char *arguments; /* after the options in its usage: "MODEL [TEXT...]"; a line each way */
    const char *help;      /* above the options in its help; what follows a \v is below them */
    const struct field *fields;          /* its options: members of the request that `run` reads */
    int (*run)(struct options *options); /* returns the exit code */
};

/* Prints "softback <command>: <sb_error()>" to standard error; returns EXIT_FAILED. */
int command_failed(const char *command);
/* The same for a mistake in the command line, with a hint at --help; returns EXIT_USAGE. */
int command_misused(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether this process prints mistakes in the command line: the first one that mpirun started, or
   the only one. All of them see the same mistake before they know of each other. */
bool command_speaks(void);

#endif
