#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_parts.h"
#include "tensor/storage.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A growing text: the header. */
struct text {
    char *bytes;
    size_t used, room;
    bool failed;
};

static void put_bytes(struct text *text, const char *bytes, size_t size)
{
    if (text->failed)
        return;
    if (size > text->room - text->used) {
        size_t room = 2 * text->room + size + 256;
        char *grown = memory_resize(text->bytes, room);
        if (!grown) {
            sb_fail("safetensors_save: out of memory for the header");
            text->failed = true;
            return;
        }
        text->bytes = grown;
        text->room = room;
    }
    memcpy(text->bytes + text->used, bytes, size);
    text->used += size;
    if (text->used > HEADER_LENGTH_BYTES + HEADER_LIMIT) {
        sb_fail("safetensors_save: names and metadata make a header of more than %d bytes",
                HEADER_LIMIT);
        text->failed = true;
    }
}

static void put(struct text *text, const char *piece)
{
    put_bytes(text, piece, strlen(piece));
}

static void put_number(struct text *text, int64_t value)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)value);
    put(text, number);
}

/* Appends a quoted string. RFC 8259 requires quotes, backslashes and control characters to be
   escaped. */
static void put_quoted(struct text *text, const char *piece)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    put(text, "\"");
    for (const char *at = piece; *at;) {
        const char *start = at;
        while ((unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
            at++;
        put_bytes(text, start, (size_t)(at - start));
        if (!*at)
            break;
        char escape[8];
        const char *found = strchr(special, *at);
        if (found)
            snprintf(escape, sizeof escape, "\\%c", letters[found - special]);
        else
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*at & 0x1F);
        put(text, escape);
        at++;
    }
    put(text, "\"");
}

static void put_metadata(struct text *text, int pairs, const char *const metadata[][2])
{
    put(text, "\"" HEADER_METADATA "\":{");
    for (int i = 0; i < pairs; i++) {
        put(text, i ? "," : "");
        put_quoted(text, metadata[i][0]);
        put(text, ":");
        put_quoted(text, metadata[i][1]);
    }
    put(text, "}");
}

/* An item, in the order of the file. */
struct entry {
    const struct source_item *item;
    int i; /* its number in the caller's order */
    int64_t bytes;
};

static void put_item(struct text *text, const struct entry *entry, int64_t offset)
{
    const struct source_item *item = entry->item;
    put_quoted(text, item->name);
    put(text, ":{\"dtype\":\"");
    put(text, codec_of(item->dtype)->name);
    put(text, "\",\"shape\":[");
    for (int i = 0; i < item->rank; i++) {
        put(text, i ? "," : "");
        put_number(text, item->dim[i]);
    }
    put(text, "],\"data_offsets\":[");
    put_number(text, offset);
    put(text, ",");
    put_number(text, offset + entry->bytes);
    put(text, "]}");
}

/* The length, and the JSON, padded so that the data begin at a multiple of 8. */
static void put_header(struct text *text, int n, const struct entry *entries, int pairs,
                       const char *const metadata[][2])
{
    int64_t offset = 0;
    put_bytes(text, "\0\0\0\0\0\0\0", HEADER_LENGTH_BYTES);
    put(text, "{");
    if (pairs > 0)
        put_metadata(text, pairs, metadata);
    for (int i = 0; i < n; i++) {
        put(text, i > 0 || pairs > 0 ? "," : "");
        put_item(text, &entries[i], offset);
        offset += entries[i].bytes;
    }
    put(text, "}");
    while (!text->failed && text->used % 8 != 0)
        put(text, " ");
    size_t length = text->used - HEADER_LENGTH_BYTES;
    for (int i = 0; !text->failed && i < HEADER_LENGTH_BYTES; i++)
        text->bytes[i] = (char)(length >> 8 * i);
}

static bool check_text(const char *what, const char *text)
{
    if (!text)
        return fail_null("safetensors_save", what);
    if (!utf8_valid(text, strlen(text)))
        return sb_fail("safetensors_save: the %s %s is not UTF-8", what, utf8_quote(text).text);
    return true;
}

static bool check_name(const struct source_item *item)
{
    if (!check_text("name", item->name))
        return false;
    if (strcmp(item->name, HEADER_METADATA) == 0)
        return sb_fail("safetensors_save: a tensor cannot be called " HEADER_METADATA);
    if (item->dtype == SB_DUAL)
        return sb_fail("safetensors_save: \"%s\" is of dual numbers; a file holds f64 at most",
                       item->name);
    return true;
}

/* The order of dtypes in the file: wide elements first. */
static int by_format(const void *a, const void *b)
{
    static const int place[SB_DTYPES] = {
        [SB_F64] = 0, [SB_F32] = 1, [SB_I32] = 2, [SB_BF16] = 3, [SB_BOOL] = 4, [SB_DUAL] = 5};
    const struct source_item *x = ((const struct entry *)a)->item;
    const struct source_item *y = ((const struct entry *)b)->item;
    int order = place[x->dtype] - place[y->dtype];
    return order ? order : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->item->name, ((const struct entry *)b)->item->name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_metadata(int pairs, const char *const metadata[][2])
{
    for (int i = 0; i < pairs; i++)
        if (!check_text("metadata key", metadata[i][0]) ||
            !check_text("metadata text", metadata[i][1]))
            return false;
    const char **key = memory_new((size_t)(pairs + 1) * sizeof *key);
    if (!key)
        return sb_fail("safetensors_save: out of memory");
    for (int i = 0; i < pairs; i++)
        key[i] = metadata[i][0];
    qsort(key, (size_t)pairs, sizeof *key, by_text);
    const char *twice = NULL;
    for (int i = 1; i < pairs && !twice; i++)
        twice = strcmp(key[i - 1], key[i]) == 0 ? key[i] : NULL;
    memory_free(key);
    if (twice)
        return sb_fail("safetensors_save: the metadata has %s twice", utf8_quote(twice).text);
    return true;
}

/* Checks the items and sorts them in the order of the file. */
static bool sort(int n, const struct source_item *items, struct entry *entries)
{
    for (int i = 0; i < n; i++) {
        const int64_t size = shape_size(items[i].rank, items[i].dim);
        if (!check_name(&items[i]))
            return false;
        entries[i] = (struct entry){&items[i], i, size * (int64_t)sb_dtype_bytes(items[i].dtype)};
    }
    qsort(entries, (size_t)n, sizeof *entries, by_name);
    for (int i = 1; i < n; i++)
        if (by_name(&entries[i - 1], &entries[i]) == 0)
            return sb_fail("safetensors_save: two tensors are called %s",
                           utf8_quote(entries[i].item->name).text);
    qsort(entries, (size_t)n, sizeof *entries, by_format);
    return true;
}

struct buffers {
    unsigned char element[CODEC_BYTES], stored[CODEC_BYTES];
};

static bool write_tensor(struct file_replacement *file, const sb_tensor *t, struct buffers *buffers)
{
    size_t width = sb_dtype_bytes(t->dtype);
    int64_t size = tensor_size(t), count;
    for (int64_t i = 0; i < size; i += count) {
        count = size - i < CODEC_ELEMENTS ? size - i : CODEC_ELEMENTS;
        size_t bytes = (size_t)count * width;
        if (!t->device->download(buffers->element, (const char *)t->data + (size_t)i * width,
                                 bytes))
            return false;
        codec_write(t->dtype, count, buffers->element, buffers->stored);
        if (!file_write(file, buffers->stored, bytes))
            return false;
    }
    return true;
}

/* Fetches each tensor, and writes it if there is a file. */
static bool write_items(struct file_replacement *file, const struct source *source,
                        const struct entry *entries, struct buffers *buffers)
{
    bool ok = true;
    for (int i = 0; ok && i < source->n; i++) {
        sb_tensor *t = source->fetch(source->context, entries[i].i);
        ok = t && (!file || write_tensor(file, t, buffers));
        sb_tensor_release(t);
    }
    return ok;
}

static bool write_file(const char *path, const struct text *header, const struct source *source,
                       const struct entry *entries)
{
    struct buffers *buffers = memory_new(sizeof *buffers);
    if (!buffers)
        return sb_fail("safetensors_save: out of memory for buffers");
    struct file_replacement *file =
        (source->is_new ? file_create : file_replace)("safetensors_save", path);
    bool ok = file && file_write(file, header->bytes, header->used) &&
              write_items(file, source, entries, buffers);
    memory_free(buffers);
    if (ok)
        return file_commit(file);
    file_abandon(file);
    return false;
}

bool source_save(const char *path, const struct source *source, int pairs,
                 const char *const metadata[][2])
{
    const int n = source->n;
    struct entry *entries = memory_new((size_t)(n + 1) * sizeof *entries);
    if (!entries)
        return sb_fail("safetensors_save: out of memory for %d tensors", n);
    struct text header = {0};
    bool ok = sort(n, source->items, entries) && check_metadata(pairs, metadata);
    if (ok)
        put_header(&header, n, entries, pairs, metadata);
    ok = ok && !header.failed &&
         (path ? write_file(path, &header, source, entries)
               : write_items(NULL, source, entries, NULL));
    memory_free(header.bytes);
    memory_free(entries);
    return ok;
}

/* ---- tensors that are there ---- */

static sb_tensor *fetch(void *context, int i)
{
    const sb_named_tensor *items = context;
    return sb_tensor_retain((sb_tensor *)(uintptr_t)items[i].tensor);
}

static bool describe(const sb_named_tensor *named, struct source_item *item)
{
    const sb_tensor *t = named->tensor;
    if (!check_text("name", named->name))
        return false;
    if (!t) {
        char what[300];
        snprintf(what, sizeof what, "tensor %s", utf8_quote(named->name).text);
        return fail_null("safetensors_save", what);
    }
    *item = (struct source_item){.name = named->name, .dtype = t->dtype, .rank = t->rank};
    memcpy(item->dim, t->dim, sizeof item->dim);
    return tensor_readable("safetensors_save", t);
}

bool sb_safetensors_save(const char *path, int n, const sb_named_tensor items[], int pairs,
                         const char *const metadata[][2])
{
    if (n < 0 || pairs < 0)
        return sb_fail("safetensors_save: %d %s", n < 0 ? n : pairs,
                       n < 0 ? "tensors" : "pairs of metadata");
    if (!path || (n > 0 && !items) || (pairs > 0 && !metadata))
        return fail_null("safetensors_save", !path             ? "path"
                                             : n > 0 && !items ? "items"
                                                               : "metadata");
    struct source_item *described = memory_new((size_t)(n + 1) * sizeof *described);
    if (!described)
        return sb_fail("safetensors_save: out of memory for %d tensors", n);
    const struct source source = {n, described, fetch, (void *)(uintptr_t)items, false};
    bool ok = true;
    for (int i = 0; ok && i < n; i++)
        ok = describe(&items[i], &described[i]);
    ok = ok && source_save(path, &source, pairs, metadata);
    memory_free(described);
    return ok;
}
