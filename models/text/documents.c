#include "models/text/documents.h"
#include "tensor/buffer.h"
#include "tensor/failure.h"
#include "tensor/hash.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdlib.h>
#include <string.h>

struct document {
    bool begins, ends;
};

struct sb_documents {
    int64_t count, room, places;
    int64_t bytes;
    char **text;
    struct document *place;
};

sb_documents *sb_documents_new(void)
{
    sb_documents *d = memory_new(sizeof *d);
    return d ? d : sb_fail("documents: out of memory");
}

void sb_documents_free(sb_documents *d)
{
    if (!d)
        return;
    for (int64_t i = 0; i < d->count; i++)
        memory_free(d->text[i]);
    memory_free(d->text);
    memory_free(d->place);
    memory_free(d);
}

static bool documents_add_piece(sb_documents *d, const char *text, size_t size,
                                struct document place)
{
    if (!memory_room(&d->text, d->count, &d->room, sizeof *d->text) ||
        !memory_room(&d->place, d->count, &d->places, sizeof *d->place) ||
        !(d->text[d->count] = memory_text_part(text, size)))
        return sb_fail("documents: out of memory");
    d->place[d->count++] = place;
    d->bytes += (int64_t)size;
    return true;
}

/* ---- cutting a text ---- */

/* The end of a line, without its LF or CRLF; *next is where the one after it begins. */
static size_t documents_line_end(const char *text, size_t size, size_t at, size_t *next)
{
    const char *newline = memchr(text + at, '\n', size - at);
    size_t end = newline ? (size_t)(newline - text) : size;
    *next = newline ? end + 1 : size;
    return newline && end > at && text[end - 1] == '\r' ? end - 1 : end;
}

static bool documents_line_is_blank(const char *text, size_t start, size_t end)
{
    while (start < end && (text[start] == ' ' || text[start] == '\t'))
        start++;
    return start == end;
}

static bool documents_end_one(sb_documents *d, struct buffer *gathered)
{
    const bool ok = gathered->size == 0 || documents_add_piece(d, gathered->bytes, gathered->size,
                                                               (struct document){true, true});
    gathered->size = 0;
    return ok;
}

/* Adds one line to what is gathered of a document, and ends that where the cut says so. */
static bool documents_take_line(sb_documents *d, struct buffer *gathered, const char *line,
                                size_t size, bool whole, sb_document_cut cut)
{
    const bool blank = documents_line_is_blank(line, 0, size);
    if (blank && cut != SB_DOCUMENTS_FILES)
        return documents_end_one(d, gathered);
    if (cut == SB_DOCUMENTS_PARAGRAPHS && gathered->size > 0 && !buffer_add(gathered, "\n", 1))
        return sb_fail("documents: out of memory");
    if (!buffer_add(gathered, line, size) ||
        (cut == SB_DOCUMENTS_FILES && whole && !buffer_add(gathered, "\n", 1)))
        return sb_fail("documents: out of memory");
    return cut != SB_DOCUMENTS_LINES || documents_end_one(d, gathered);
}

/* Names the line of a byte that is no text. */
static bool documents_check(const char *name, const char *text, size_t size)
{
    const size_t valid = utf8_valid_size(text, size);
    const char *nul = memchr(text, '\0', valid);
    const size_t bad = nul ? (size_t)(nul - text) : valid;
    long long line = 1;
    for (size_t i = 0; i < bad; i++)
        line += text[i] == '\n';
    if (nul)
        return sb_fail("%s:%lld: there is a NUL byte, expected a text in UTF-8", name, line);
    return bad == size || sb_fail("%s:%lld: byte 0x%02x is not UTF-8; convert the file first, for "
                                  "example with iconv",
                                  name, line, (unsigned char)text[bad]);
}

bool sb_documents_add(sb_documents *d, const char *name, const char *text, size_t size,
                      sb_document_cut cut)
{
    if (!d || !name || !text)
        return fail_null("documents_add", !d ? "documents" : name ? "text" : "name");
    if ((unsigned)cut > SB_DOCUMENTS_LINES)
        return sb_fail("documents_add: %d is no way to cut a text", (int)cut);
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        size -= 3;
    }
    if (!documents_check(name, text, size))
        return false;
    const int64_t before = d->count;
    struct buffer gathered = {0};
    bool ok = true;
    for (size_t at = 0, next; ok && at < size; at = next) {
        const size_t end = documents_line_end(text, size, at, &next);
        ok = documents_take_line(d, &gathered, text + at, end - at,
                                 next < size || text[size - 1] == '\n', cut);
    }
    ok = ok && documents_end_one(d, &gathered);
    buffer_free(&gathered);
    return ok && (d->count > before || sb_fail("%s: it has no text", name));
}

/* ---- what there is ---- */

int64_t sb_documents_count(const sb_documents *d)
{
    return d ? d->count : 0;
}

int64_t sb_documents_bytes(const sb_documents *d)
{
    return d ? d->bytes : 0;
}

const char *sb_documents_text(const sb_documents *d, int64_t i)
{
    return i >= 0 && i < sb_documents_count(d) ? d->text[i] : NULL;
}

const char *const *sb_documents_texts(const sb_documents *d)
{
    return d ? (const char *const *)d->text : NULL;
}

bool sb_documents_begins(const sb_documents *d, int64_t i)
{
    return i >= 0 && i < sb_documents_count(d) && d->place[i].begins;
}

bool sb_documents_ends(const sb_documents *d, int64_t i)
{
    return i >= 0 && i < sb_documents_count(d) && d->place[i].ends;
}

uint64_t sb_documents_hash(const sb_documents *d)
{
    uint64_t hash = HASH_START;
    for (int64_t i = 0; i < sb_documents_count(d); i++) {
        const char marks[] = {(char)d->place[i].begins, (char)d->place[i].ends};
        hash = hash_add(hash, d->text[i], strlen(d->text[i]) + 1);
        hash = hash_add(hash, marks, sizeof marks);
    }
    return hash;
}

/* ---- holding some out ---- */

/* Where the last part of a text begins: at a line or at least a character. */
static size_t documents_cut_at(const char *text, size_t size, int64_t parts)
{
    const size_t wanted = size - size / (size_t)parts, near = size / (size_t)(4 * parts);
    for (size_t at = wanted; at > 1 && wanted - at < near; at--)
        if (text[at - 1] == '\n')
            return at;
    size_t at = wanted;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) /* inside of a character */
        at--;
    return at;
}

/* The last part of each. */
static bool documents_divide_each(const sb_documents *d, int64_t parts, sb_documents *rest,
                                  sb_documents *held)
{
    for (int64_t i = 0; i < d->count; i++) {
        const size_t size = strlen(d->text[i]), at = documents_cut_at(d->text[i], size, parts);
        const struct document place = d->place[i];
        const bool cut = at > 0 && at < size;
        if (!documents_add_piece(rest, d->text[i], cut ? at : size,
                                 (struct document){place.begins, !cut && place.ends}) ||
            (cut && !documents_add_piece(held, d->text[i] + at, size - at,
                                         (struct document){false, place.ends})))
            return false;
    }
    return true;
}

static int documents_by_hash(const void *a_, const void *b_)
{
    const uint64_t a = *(const uint64_t *)a_, b = *(const uint64_t *)b_;
    return a < b ? -1 : a > b;
}

/* The highest hash of a held-out document: 1 in `parts` documents is held out, and any of equal
 * hash. */
static bool documents_highest_hash(const sb_documents *d, int64_t parts, uint64_t *highest)
{
    uint64_t *hash = memory_new((size_t)d->count * sizeof *hash);
    if (!hash)
        return sb_fail("documents: out of memory");
    for (int64_t i = 0; i < d->count; i++)
        hash[i] = hash_add(HASH_START, d->text[i], strlen(d->text[i]));
    qsort(hash, (size_t)d->count, sizeof *hash, documents_by_hash);
    *highest = hash[d->count / parts - 1];
    memory_free(hash);
    return true;
}

/* Holds whole documents out, where there are at least `parts`. */
static bool documents_divide_whole(const sb_documents *d, int64_t parts, sb_documents *rest,
                                   sb_documents *held)
{
    uint64_t highest = 0;
    bool ok = documents_highest_hash(d, parts, &highest);
    for (int64_t i = 0; ok && i < d->count; i++) {
        const size_t size = strlen(d->text[i]);
        const bool out = hash_add(HASH_START, d->text[i], size) <= highest;
        ok = documents_add_piece(out ? held : rest, d->text[i], size, d->place[i]);
    }
    return ok;
}

bool sb_documents_divide(const sb_documents *d, int64_t parts, sb_documents **rest,
                         sb_documents **held)
{
    if (!d || !rest || !held)
        return fail_null("documents_divide", !d ? "documents" : rest ? "held" : "rest");
    if (parts < 2 || parts > 1000000)
        return sb_fail("documents_divide: parts is %lld, not in 2..1000000", (long long)parts);
    *rest = sb_documents_new();
    *held = *rest ? sb_documents_new() : NULL;
    const bool whole = d->count >= parts;
    bool ok =
        *held && (whole ? documents_divide_whole : documents_divide_each)(d, parts, *rest, *held);
    if (ok && (*rest)->bytes > 0 && (*held)->bytes > 0)
        return true;
    if (ok)
        sb_fail("documents_divide: %lld documents of %lld bytes are too few to hold one part in "
                "%lld out",
                (long long)d->count, (long long)d->bytes, (long long)parts);
    sb_documents_free(*rest);
    sb_documents_free(*held);
    *rest = *held = NULL;
    return false;
}
