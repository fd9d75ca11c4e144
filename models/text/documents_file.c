/* Documents from files: apart from the rest, so that a build without files leaves this one out. */
#include "models/text/documents.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include <string.h>

enum { MOST_BYTES = 1 << 30 };

bool sb_documents_read(sb_documents *documents, const char *path, sb_document_cut cut)
{
    if (!documents || !path)
        return fail_null("documents_read", documents ? "path" : "documents");
    const bool standard = strcmp(path, "-") == 0;
    size_t size;
    char *text = file_text("documents_read", standard ? "/dev/stdin" : path, MOST_BYTES, &size);
    const bool ok =
        text && sb_documents_add(documents, standard ? "standard input" : path, text, size, cut);
    memory_free(text);
    return ok;
}
