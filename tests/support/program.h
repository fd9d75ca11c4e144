/* Runs the program, as a user would, in the test's temporary folder. */
#ifndef SOFTBACK_TESTS_SUPPORT_PROGRAM_H
#define SOFTBACK_TESTS_SUPPORT_PROGRAM_H

#include "tests/support/test.h"
#include <sys/types.h>

/* The result of a run; its strings are valid until the end of the test. */
struct outcome {
    int code;  /* exit code; -1: ended by a signal */
    char *out; /* standard output */
    char *err; /* standard error */
};

/* `softback ARGUMENTS` for the shell, so that "<", ">" and "|" work. */
struct outcome program_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and asserts that it succeeds. */
struct outcome run_well(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A command for the shell, in which `softback` is the program. */
struct outcome program_shell(const char *command);

/* As program_run, in the background; the output goes to the files "out" and "err". */
pid_t program_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Waits for it. */
struct outcome program_wait(pid_t process);

/* The same with a terminal for its three standard files; `out` is what it prints there. */
struct outcome program_on_terminal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Expects the text to contain the part; how many times it does. */
void expect_text(const char *text, const char *part);
#define EXPECT_TEXTS(text, ...) expect_texts(text, (const char *const[]){__VA_ARGS__, NULL})
void expect_texts(const char *text, const char *const parts[]);
int count_of(const char *text, const char *part);

/* How many lines a training run has printed for its evaluations, as a pipe or a file gets them; -1
   if the text has any other line. */
int program_evaluations(const char *text);

/* The prefix of commands from now on: "mpirun -n 2", or "" for none. */
void program_launcher(const char *command);

/* Writes, reads (NULL: no file), and compares files in that folder. Logs, *.jsonl, may differ in
   the time that training took. */
void program_write(const char *file, const char *text, size_t size);
void write_text(const char *file, const char *text);
char *program_read(const char *file, size_t *size);
bool program_same(const char *a, const char *b);
/* Removes the lines of a log, a text, that have that time. */
void program_cut_seconds(char *log, size_t *size);
/* Copies a file, which must exist. */
void program_copy(const char *from, const char *to);
bool exists(const char *file);
size_t size_of(const char *file); /* 0 without it */

/* Writes "pairs.tsv": 60 numbers of two digits, and each with its digits exchanged. */
void program_write_pairs(void);
/* Model, state and log of the run "m": renames and copies them; names begin with these words. */
void rename_run(const char *to);
void copy_run(const char *from, const char *to);
void pause_for(double seconds);
/* Expects model, state and log of the run "m" to have the bytes of those whose names begin with
   `run`, and no temporary file to be left. */
void program_expect_same_run(const char *run);

#endif
