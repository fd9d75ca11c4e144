#include "program/screen/foreign.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <string.h>

enum { COPIES = 8 };

const char *foreign(const char *text)
{
    static char *copies[COPIES];
    static int next;
    char *copy = memory_text(text);
    if (!copy)
        return "(out of memory)";
    utf8_disarm(copy);
    if (strcmp(copy, text) == 0) {
        memory_free(copy);
        return text;
    }
    memory_free(copies[next]);
    copies[next] = copy;
    next = (next + 1) % COPIES;
    return copy;
}
