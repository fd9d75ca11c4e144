/* A command of the program: `softback train`, `softback translate`, ... */
#ifndef SOFTBACK_PROGRAM_SCREEN_COMMAND_H
#define SOFTBACK_PROGRAM_SCREEN_COMMAND_H

#include "models/field.h"
#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options; /* program/options/options.h */

struct command {
    const char *summary;   /* one line for `softback --help` */
    const char *arguments; /* after the options in its usage: "MODEL [TEXT...]"; a line each way */
    const char *help;      /* above the options in its help; what follows a \v is below them */
    const struct field *fields;           /* its options: members of the request that `run` reads */
    bool (*run)(struct options *options); /* false when it has failed, and said why */
};

/* Prints "softback <command>: <sb_error()>" to standard error; returns false. */
bool command_failed(void);
/* The same for a mistake in the command line, for which the exit code is EXIT_USAGE; and for one
   that the format says, with a hint at --help. */
bool command_refused(void);
bool command_misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code of a command that has failed. */
int command_code(void);

#endif
