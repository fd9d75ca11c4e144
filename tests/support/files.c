#include "tests/support/files.h"
#include "tensor/file.h"
#include "tests/support/test.h"
#include <stdio.h>

void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

bool holds(const char *path, const char *text)
{
    size_t size;
    char *found = KEPT(file_text("test", path, 1 << 20, &size));
    bool same = found && size == strlen(text) && memcmp(found, text, size) == 0;
    return same;
}
