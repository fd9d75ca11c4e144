#include "program/screen/unknown.h"
#include "tensor/device.h"
#include "tensor/utf8.h"
#include <stdio.h>

static sb_unknown unknown_find(const sb_vocabulary *vocabulary, const char *text)
{
    sb_unknown unknown = {0};
    int64_t count;
    sb_free(sb_vocabulary_encode(vocabulary, text, &count, &unknown));
    return unknown;
}

int64_t unknown_count(const sb_vocabulary *vocabulary, const char *text)
{
    return unknown_find(vocabulary, text).count;
}

bool unknown_note(const char *command, const char *where, const sb_vocabulary *vocabulary,
                  const char *text)
{
    sb_unknown unknown = unknown_find(vocabulary, text);
    char symbol[128];
    if (unknown.count == 0)
        return false;
    snprintf(symbol, sizeof symbol, "%.*s", (int)unknown.first_size, text + unknown.first);
    fprintf(stderr, "softback %s: %s: %s is unknown to the model", command, where,
            utf8_quote(symbol).text);
    if (unknown.count > 1)
        fprintf(stderr, ", and %lld more", (long long)unknown.count - 1);
    fputc('\n', stderr);
    return true;
}
