/* The program `softback`: finds the command and runs it. */
#include "program/options/options.h"
#include "tensor/version.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DECLARE(name) extern const struct command command_##name;
#define ROW(name) {#name, &command_##name},
COMMANDS(DECLARE)

static const struct {
    const char *name;
    const struct command *command;
} commands[] = {COMMANDS(ROW)};

enum { COUNT = sizeof commands / sizeof commands[0] };

static void main_help(FILE *out)
{
    fputs("Usage: softback COMMAND [OPTION...]\n"
          "Trains transformers, translates and writes with them, and checks gradients.\n\n",
          out);
    for (int i = 0; i < COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].command->summary);
    fputs("\n'softback COMMAND --help' explains a command.\n", out);
}

static const char *main_command_name(const void *unused, int i)
{
    (void)unused;
    return i < COUNT ? commands[i].name : NULL;
}

/* Output is buffered: on a full disk, writing it fails only here. Called however the program ends,
   by argp after --help too. After an earlier flush that failed, the reason is unknown. */
static void main_finish(int code, void *unused)
{
    (void)unused;
    errno = 0;
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout))
        return;
    fprintf(stderr, "softback: the output cannot be written%s%s\n", flushed ? "" : ": ",
            flushed ? "" : strerror(errno));
    fflush(stderr);
    _exit(code == EXIT_OK ? EXIT_FAILED : code);
}

/* Descriptors 0 to 2 may be closed. Then the next file that is opened would be one of them, and
   what is printed would go into it. */
static void main_open_descriptors(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDWR) != descriptor)
            _exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
    static char name[64] = "softback"; /* static: hwloc, which Open MPI uses, reads it later */
    program_invocation_name = name;
    main_open_descriptors();
    on_exit(main_finish, NULL);
    if (argc < 2) {
        main_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        main_help(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("softback %s\n", sb_version());
        machine_print_cpu();
        machine_print_cuda();
        return EXIT_OK;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that passes a limit is then an error of its writer */
    for (int i = 0; i < COUNT; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            snprintf(name, sizeof name, "softback %s", argv[1]);
            argv[1] = name; /* argp's own messages begin with it */
            struct options options = {
                .command = commands[i].command, .argc = argc - 1, .argv = argv + 1};
            return commands[i].command->run(&options) ? EXIT_OK : command_code();
        }
    command_misused("there is no command \"%s\"%s", argv[1],
                    nearest_name(argv[1], main_command_name, NULL, "\"", "\"").text);
    return EXIT_USAGE;
}
