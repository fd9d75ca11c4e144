#include "models/data/tagged.h"
#include "tensor/memory.h"
#include <string.h>

const char **tagged_split(const char *const *texts, int64_t count, const char *separators,
                          int64_t *words)
{
    size_t size = 0;
    for (int64_t i = 0; i < count; i++)
        size += strlen(texts[i]) + 1;
    const char **word = memory_new(size * (sizeof *word + 1)); /* the words, and their bytes */
    char *to = word ? (char *)(word + size) : NULL;
    *words = 0;
    for (int64_t i = 0; word && i < count; i++) {
        const char *from = texts[i];
        do {
            const size_t n = strcspn(from, separators);
            if (n > 0 || !separators[0])
                word[(*words)++] = to;
            memcpy(to, from, n);
            to[n] = '\0';
            to += n + 1;
            from += n;
        } while (*from++);
    }
    return word;
}

sb_labels *tagged_labels(const char *const *texts, int64_t count)
{
    int64_t n;
    const char **words = tagged_split(texts, count, " ", &n);
    sb_labels *labels = words ? sb_labels_new(words, n) : sb_fail("tagged: out of memory");
    memory_free(words);
    return labels;
}
