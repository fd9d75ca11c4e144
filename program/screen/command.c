#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "tensor/error.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int code = EXIT_FAILED; /* of a command that fails */

int command_code(void)
{
    return code;
}

bool command_failed(void)
{
    const char *message = sb_error(); /* a failure without one is of an allocation */
    fprintf(stderr, "%s: %s\n", program_invocation_name, message[0] ? message : "out of memory");
    return false;
}

/* Whether this process prints mistakes in the command line: the first one that mpirun started, or
   the only one. All of them see the same mistake before they know of each other. */
static bool command_speaks(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const char *rank = getenv(ranks[i]);
        if (rank)
            return atoi(rank) == 0;
    }
    return true;
}

bool command_refused(void)
{
    code = EXIT_USAGE;
    return command_speaks() && command_failed();
}

bool command_misused(const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    code = EXIT_USAGE;
    if (command_speaks())
        fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program_invocation_name, foreign(text),
                program_invocation_name);
    return false;
}
