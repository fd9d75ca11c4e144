/* A command of the program: `softback train`, `softback translate`, ... */
#ifndef SOFTBACK_PROGRAM_SCREEN_COMMAND_H
#define SOFTBACK_PROGRAM_SCREEN_COMMAND_H

#include <argp.h>
#include <stdbool.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *summary; /* one line for `softback --help` */
    int (*run)(int argc, char **argv);
};

/* Prints "softback <command>: <sb_error()>" to standard error; returns EXIT_FAILED. */
int command_failed(const char *command);
/* Whether this process prints mistakes in the command line: the first one that mpirun started, or
   the only one. All of them see the same mistake before they know of each other. */
bool command_speaks(void);
/* The same for a mistake in the command line, with a hint at --help; returns EXIT_USAGE. */
int command_misused(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Reads the command line with argp. An option that does not exist is named together with the
 * nearest one that does. Returns -1 to continue, else the exit code. --help and --usage end the
 * program.
 */
int command_parse(const struct argp *argp, const char *command, int argc, char **argv, void *input);

#endif
