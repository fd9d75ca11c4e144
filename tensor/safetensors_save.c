#include "tensor/buffer.h"
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

/* Appends a quoted string. RFC 8259 requires quotes, backslashes and control characters to be
   escaped. */
static void put_quoted(struct buffer *text, const char *piece)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    buffer_add_text(text, "\"");
    for (const char *at = piece, *found; *at; at++)
        if ((found = strchr(special, *at)))
            buffer_print(text, "\\%c", letters[found - special]);
        else if ((unsigned char)*at < 0x20)
            buffer_print(text, "\\u%04x", (unsigned)*at);
        else
            buffer_add(text, at, 1);
    buffer_add_text(text, "\"");
}

static void put_metadata(struct buffer *text, int pairs, const char *const metadata[][2])
{
    buffer_add_text(text, "\"" HEADER_METADATA "\":{");
    for (int i = 0; i < pairs; i++) {
        buffer_add_text(text, i ? "," : "");
        put_quoted(text, metadata[i][0]);
        buffer_add_text(text, ":");
        put_quoted(text, metadata[i][1]);
    }
    buffer_add_text(text, "}");
}

/* An item, in the order of the file. */
struct entry {
    const struct source_item *item;
    int i; /* its number in the caller's order */
    int64_t bytes;
};

static void put_item(struct buffer *text, const struct entry *entry, int64_t offset)
{
    const struct source_item *item = entry->item;
    put_quoted(text, item->name);
    buffer_print(text, ":{\"dtype\":\"%s\",\"shape\":[", codec_of(item->dtype)->name);
    for (int i = 0; i < item->rank; i++)
        buffer_print(text, i ? ",%lld" : "%lld", (long long)item->dim[i]);
    buffer_print(text, "],\"data_offsets\":[%lld,%lld]}", (long long)offset,
                 (long long)(offset + entry->bytes));
}

/* The length, and the JSON, padded so that the data begin at a multiple of 8. */
static bool put_header(struct buffer *text, int n, const struct entry *entries, int pairs,
                       const char *const metadata[][2])
{
    int64_t offset = 0;
    buffer_add(text, "\0\0\0\0\0\0\0", HEADER_LENGTH_BYTES);
    buffer_add_text(text, "{");
    if (pairs > 0)
        put_metadata(text, pairs, metadata);
    for (int i = 0; i < n; i++) {
        buffer_add_text(text, i > 0 || pairs > 0 ? "," : "");
        put_item(text, &entries[i], offset);
        offset += entries[i].bytes;
    }
    buffer_add_text(text, "}");
    while (!text->failed && text->size % 8 != 0)
        buffer_add_text(text, " ");
    if (text->failed)
        return sb_fail("safetensors_save: out of memory for the header");
    const size_t length = text->size - HEADER_LENGTH_BYTES;
    if (length > HEADER_LIMIT)
        return sb_fail("safetensors_save: names and metadata make a header of more than %d bytes",
                       HEADER_LIMIT);
    for (int i = 0; i < HEADER_LENGTH_BYTES; i++)
        text->bytes[i] = (char)(length >> 8 * i);
    return true;
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

static bool write_file(const char *path, const struct buffer *header, const struct source *source,
                       const struct entry *entries)
{
    struct buffers *buffers = memory_new(sizeof *buffers);
    if (!buffers)
        return sb_fail("safetensors_save: out of memory for buffers");
    struct file_replacement *file =
        (source->is_new ? file_create : file_replace)("safetensors_save", path);
    bool ok = file && file_write(file, header->bytes, header->size) &&
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
    struct buffer header = {0};
    const bool ok = sort(n, source->items, entries) && check_metadata(pairs, metadata) &&
                    put_header(&header, n, entries, pairs, metadata) &&
                    (path ? write_file(path, &header, source, entries)
                          : write_items(NULL, source, entries, NULL));
    buffer_free(&header);
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
