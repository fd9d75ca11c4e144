#include "program/screen/input.h"
#include "models/text/pairs.h"
#include "tensor/failure.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads what is available without filling the buffer, as someone may wait for the answer. */
static int64_t input_read(void *unused, char *bytes, size_t room)
{
    (void)unused;
    ssize_t size;
    do
        size = read(STDIN_FILENO, bytes, room);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        sb_fail(INPUT ": cannot be read: %s", strerror(errno));
    return size;
}

bool input_begin(struct lines *lines)
{
    return lines_begin(lines, INPUT, SB_PAIRS_LINE, input_read, NULL);
}

void input_refuse(const char *command, int64_t number, const char *reason)
{
    fprintf(stderr, "softback %s: " INPUT ":%lld: %s\n", command, (long long)number, reason);
}
