/* Pairs and documents from files: apart from the rest, so that a build without files leaves this
   one out. */
#include "models/text/documents.h"
#include "models/text/lines.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- pairs ---- */

struct open_file {
    FILE *file;
    const char *name;
};

static int64_t read_file(void *from, char *bytes, size_t room)
{
    const struct open_file *open = from;
    size_t size = 0;
    do { /* a signal that the caller handles may interrupt it */
        clearerr(open->file);
        errno = 0;
        size += fread(bytes + size, 1, room - size, open->file);
    } while (size < room && ferror(open->file) && errno == EINTR);
    if (size < room && ferror(open->file)) { /* at once, while errno has the reason */
        sb_fail("%s: cannot be read: %s", open->name, strerror(errno));
        return -1;
    }
    return (int64_t)size;
}

static bool files_open(struct open_file *open, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    open->name = standard ? "standard input" : path;
    open->file = standard ? stdin : fopen(path, "rb");
    return open->file || sb_fail("%s: cannot be opened: %s", path, strerror(errno));
}

static void files_close(struct open_file *open)
{
    if (open->file && open->file != stdin)
        fclose(open->file);
}

static struct pairs_file pairs_lines_of(struct open_file *open)
{
    return (struct pairs_file){open->name, read_file, open};
}

sb_pairs *sb_pairs_read(const char *path, const sb_pairs_options *options)
{
    if (!path)
        return fail_null("pairs_read", "path");
    struct open_file open = {0};
    if (!files_open(&open, path))
        return NULL;
    sb_pairs *pairs = pairs_read("pairs_read", pairs_lines_of(&open), NULL, options);
    files_close(&open);
    return pairs;
}

sb_pairs *sb_pairs_read_two(const char *source_path, const char *target_path,
                            const sb_pairs_options *options)
{
    if (!source_path || !target_path)
        return fail_null("pairs_read_two", source_path ? "target_path" : "source_path");
    struct open_file source = {0}, target = {0};
    sb_pairs *pairs = NULL;
    if (files_open(&source, source_path) && files_open(&target, target_path)) {
        struct pairs_file targets = pairs_lines_of(&target);
        pairs = pairs_read("pairs_read_two", pairs_lines_of(&source), &targets, options);
    }
    files_close(&source);
    files_close(&target);
    return pairs;
}

/* ---- documents ---- */

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
