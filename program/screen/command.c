#include "program/screen/command.h"
#include "program/screen/foreign.h"
#include "tensor/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
