/* The program `softback`: finds the command and runs it. */
#include "program/command.h"
#include "program/nearest.h"
#include "program/waiting.h"
#include "tensor/version.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
#ifdef SOFTBACK_JSON
    &command_train,     &command_translate, &command_evaluate, &command_attend,
    &command_average,   &command_report,    &command_info,     &command_explain,
#endif
    &command_gradcheck, &command_bench,
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

#ifdef SOFTBACK_JSON
static const char without_json[] = "";
#else
static const char without_json[] =
    "\nBuilt without Jansson, which the commands that train and use models need.\n";
#endif

static void main_help(FILE *out)
{
    fputs("Usage: softback COMMAND [OPTION...]\n"
          "Trains encoder-decoder models, translates with them, and checks gradients.\n\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs(without_json, out);
    fputs("\n'softback COMMAND --help' explains a command.\n", out);
}

static const char *main_command_name(const void *unused, int i)
{
    (void)unused;
    return i < COMMANDS ? commands[i]->name : NULL;
}

/* Output is buffered: on a full disk, writing it fails only here. */
static int main_finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "softback: the output cannot be written: %s\n", strerror(errno));
    return code == EXIT_OK ? EXIT_FAILED : code;
}

int main(int argc, char **argv)
{
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
        return EXIT_OK;
    }
    waiting_shorten(argv);
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return main_finish(commands[i]->run(argc - 1, argv + 1));
    const char *nearest = nearest_word(argv[1], main_command_name, NULL);
    fprintf(stderr, "softback: there is no command \"%s\"", argv[1]);
    fprintf(stderr, nearest ? "; did you mean \"%s\"?\n" : "\n", nearest);
    fputs(without_json, stderr);
    fputs("Try 'softback --help'.\n", stderr);
    return EXIT_USAGE;
}
