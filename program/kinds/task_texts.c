#include "program/kinds/task_texts.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <string.h>

char *task_prompt(const char *source)
{
    char *text = memory_format("%s = ", source);
    return text ? text : sb_fail("out of memory");
}

sb_documents *task_documents(const char *task, const sb_pairs *pairs)
{
    sb_documents *documents = sb_documents_new();
    bool ok = documents != NULL;
    for (int64_t i = 0; ok && i < sb_pairs_count(pairs); i++) {
        char *line = memory_format("%s = %s", sb_pairs_source(pairs, i), sb_pairs_target(pairs, i));
        ok = line ? sb_documents_add(documents, task, line, strlen(line), SB_DOCUMENTS_LINES)
                  : sb_fail("out of memory") != NULL;
        memory_free(line);
    }
    if (ok)
        return documents;
    sb_documents_free(documents);
    return NULL;
}
