#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "program/screen/nearest.h"
#include "tensor/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_failed(const char *command)
{
    const char *message = sb_error(); /* a failure without one is of an allocation */
    fprintf(stderr, "softback %s: %s\n", command, message[0] ? message : "out of memory");
    return EXIT_FAILED;
}

bool command_speaks(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank)
            return atoi(rank) == 0;
    }
    return true;
}

int command_misused(const char *command, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!command_speaks())
        return EXIT_USAGE;
    fprintf(stderr, "softback %s: %s\nTry 'softback %s --help'.\n", command, foreign(text),
            command);
    return EXIT_USAGE;
}

static int command_option_count(const struct argp_option *options)
{
    int n = 0;
    while (options && (options[n].name || options[n].key || options[n].doc))
        n++;
    return n;
}

static const char *command_option_name(const void *list, int i)
{
    static const char *const own[] = {"help", "usage"}; /* argp's */
    const struct argp_option *options = list;
    int n = command_option_count(options);
    if (i < n)
        return options[i].name ? options[i].name : "";
    return i - n < 2 ? own[i - n] : NULL;
}

/* How many options begin with a word; 1 when it is the whole name of one. *option is the last. */
static int command_matches(const struct argp_option *options, const char *word, int *option)
{
    int count = 0;
    for (int i = 0; command_option_name(options, i); i++) {
        bool begins = strncmp(command_option_name(options, i), word, strlen(word)) == 0;
        if (begins)
            *option = i;
        if (strcmp(command_option_name(options, i), word) == 0)
            return 1;
        count += begins;
    }
    return count;
}

static int command_check_options(const struct argp *argp, const char *command, int argc,
                                 char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(argv[i] + 2, "="), argv[i] + 2);
        int option = 0, count = command_matches(argp->options, word, &option);
        if (count == 1) { /* its value may look like an option */
            bool has_value =
                option < command_option_count(argp->options) && argp->options[option].arg;
            i += has_value && !strchr(argv[i], '=');
            continue;
        }
        if (count > 1)
            return command_misused(command, "--%s is ambiguous: several options begin with it",
                                   word);
        const char *nearest = nearest_word(word, command_option_name, argp->options);
        return nearest ? command_misused(command, "there is no option --%s; did you mean --%s?",
                                         word, nearest)
                       : command_misused(command, "there is no option --%s", word);
    }
    return -1;
}

int command_parse(const struct argp *argp, const char *command, int argc, char **argv, void *input)
{
    static char name[64]; /* static: hwloc, which Open MPI uses, reads it later */
    int wrong = command_check_options(argp, command, argc, argv);
    if (wrong >= 0)
        return wrong;
    snprintf(name, sizeof name, "softback %s", command);
    argv[0] = name; /* argp's own messages begin with it */
    program_invocation_name = name;
    argp_err_exit_status = EXIT_USAGE;
    error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
    return failed ? EXIT_USAGE : -1;
}
