/*
 * Documents: the texts that a language model learns from, in UTF-8.
 *
 * A file is one document, or many, one a line or one between blank lines. Ends of lines are LF;
 * CRLF becomes LF, and a byte-order mark at the start of a file is left out. A document may be a
 * piece of a longer one, from which another part was held out: then it lacks a beginning or an end,
 * and no model learns one there.
 */
#ifndef SOFTBACK_MODELS_TEXT_DOCUMENTS_H
#define SOFTBACK_MODELS_TEXT_DOCUMENTS_H

#include "../../tensor/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sb_documents sb_documents;

/* How a file is cut into documents. */
typedef enum {
    SB_DOCUMENTS_FILES,      /* each file is one */
    SB_DOCUMENTS_PARAGRAPHS, /* one between blank lines, which belong to none */
    SB_DOCUMENTS_LINES,      /* one a line; empty lines are passed over */
} sb_document_cut;

SB_API sb_documents *sb_documents_new(void);
SB_API void sb_documents_free(sb_documents *documents);

/* Adds the documents of a text of `size` bytes; `name` opens messages. Fails at a byte that is not
   UTF-8 and at a NUL, naming the line, and where the text has no document. */
SB_API bool sb_documents_add(sb_documents *documents, const char *name, const char *text,
                             size_t size, sb_document_cut cut);

/* Adds the documents of a file; "-" is standard input. */
SB_API bool sb_documents_read(sb_documents *documents, const char *path, sb_document_cut cut);

SB_API int64_t sb_documents_count(const sb_documents *documents);
SB_API int64_t sb_documents_bytes(const sb_documents *documents); /* of all texts */
SB_API const char *sb_documents_text(const sb_documents *documents, int64_t i);
SB_API const char *const *sb_documents_texts(const sb_documents *documents);
/* Whether document i starts at the beginning, or ends at the end, of the text it was cut from. */
SB_API bool sb_documents_begins(const sb_documents *documents, int64_t i);
SB_API bool sb_documents_ends(const sb_documents *documents, int64_t i);

/*
 * Divides documents into two new sets: about one part in `parts` (at least 2) is held out, the rest
 * is for training. Of at least `parts` documents whole ones are held out, chosen by their
 * texts, so that equal ones stay together; of fewer, the last part of each, from the start of a
 * line where there is one near. Fails when nothing would be left on a side.
 */
SB_API bool sb_documents_divide(const sb_documents *documents, int64_t parts, sb_documents **rest,
                                sb_documents **held);

/* A number that changes with the texts, their order and their cuts. */
SB_API uint64_t sb_documents_hash(const sb_documents *documents);

#endif
