#include "tensor/safetensors_header.h"
#include "tensor/failure.h"
#include "tensor/json_reader.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_DTYPE = 1, SEEN_SHAPE = 2, SEEN_OFFSETS = 4, SEEN_ALL = 7 };

void header_free(struct header *header)
{
    memory_free(header->text);
    memory_free(header->tensor);
    memory_free(header->pair);
}

/* The beginning of messages about one tensor. */
struct who {
    char text[640];
};

static struct who who(const char *what, const char *name)
{
    struct who who;
    snprintf(who.text, sizeof who.text, "%s: tensor %s", what, utf8_quote(name).text);
    return who;
}

static bool read_metadata(struct header *header, struct json_reader *json)
{
    reader_object(json);
    for (const char *key; (key = reader_key(json));) {
        const char *text = reader_text(json);
        if (!text)
            return false;
        if (!memory_room(&header->pair, header->pairs, &header->pair_room, sizeof *header->pair))
            return sb_fail("%s: out of memory for its metadata", json->what);
        header->pair[header->pairs++] = (struct header_pair){key, text};
    }
    return !json->failed;
}

static bool read_shape(struct header_tensor *tensor, struct json_reader *json)
{
    reader_array(json);
    while (reader_item(json)) {
        int64_t dim = reader_whole(json);
        if (json->failed)
            return false;
        if (tensor->rank == SB_MAX_RANK)
            return sb_fail("%s: the shape has more than %d dimensions",
                           who(json->what, tensor->name).text, SB_MAX_RANK);
        tensor->dim[tensor->rank++] = dim;
    }
    return !json->failed;
}

static bool read_offsets(struct header_tensor *tensor, struct json_reader *json)
{
    int64_t offset[3];
    int count = 0;
    for (reader_array(json); count < 3 && reader_item(json); count++)
        offset[count] = reader_whole(json);
    if (json->failed)
        return false;
    if (count != 2)
        return sb_fail("%s: data_offsets are %s two numbers", who(json->what, tensor->name).text,
                       count < 2 ? "fewer than" : "more than");
    tensor->begin = offset[0];
    tensor->end = offset[1];
    return true;
}

static bool read_dtype(struct header_tensor *tensor, struct json_reader *json)
{
    const char *name = reader_text(json);
    tensor->codec = name ? codec_find(name) : NULL;
    if (name && !tensor->codec)
        return sb_fail("%s: the dtype %s is unknown", who(json->what, tensor->name).text,
                       utf8_quote(name).text);
    return name != NULL;
}

/* Reads one of the three things that are said of a tensor, and returns its SEEN_ bit; 0 on
   failure. */
static int read_property(struct header_tensor *tensor, struct json_reader *json, const char *key)
{
    if (strcmp(key, "dtype") == 0)
        return read_dtype(tensor, json) ? SEEN_DTYPE : 0;
    if (strcmp(key, "shape") == 0)
        return read_shape(tensor, json) ? SEEN_SHAPE : 0;
    if (strcmp(key, "data_offsets") == 0)
        return read_offsets(tensor, json) ? SEEN_OFFSETS : 0;
    sb_fail("%s: has %s; only dtype, shape and data_offsets are known",
            who(json->what, tensor->name).text, utf8_quote(key).text);
    return 0;
}

static bool read_tensor(struct header *header, struct json_reader *json, const char *name)
{
    struct header_tensor tensor = {.name = name};
    int seen = 0;
    reader_object(json);
    for (const char *key; (key = reader_key(json));) {
        int property = read_property(&tensor, json, key);
        if (property == 0)
            return false;
        if (seen & property)
            return sb_fail("%s: %s is there twice", who(json->what, name).text, key);
        seen |= property;
    }
    if (json->failed)
        return false;
    if (seen != SEEN_ALL)
        return sb_fail("%s: has no %s", who(json->what, name).text,
                       !(seen & SEEN_DTYPE)   ? "dtype"
                       : !(seen & SEEN_SHAPE) ? "shape"
                                              : "data_offsets");
    if (!memory_room(&header->tensor, header->tensors, &header->tensor_room, sizeof tensor))
        return sb_fail("%s: out of memory for %lld tensors", json->what,
                       (long long)header->tensors + 1);
    header->tensor[header->tensors++] = tensor;
    return true;
}

static bool read_all(struct header *header, struct json_reader *json)
{
    bool metadata = false;
    reader_object(json);
    for (const char *name; (name = reader_key(json));) {
        bool is_metadata = strcmp(name, HEADER_METADATA) == 0;
        if (is_metadata && metadata)
            return sb_fail("%s: " HEADER_METADATA " is there twice", json->what);
        metadata |= is_metadata;
        if (!(is_metadata ? read_metadata(header, json) : read_tensor(header, json, name)))
            return false;
    }
    return reader_end(json);
}

/* The tensor's own numbers agree: shape times element is what the offsets span. */
static bool check_tensor(const struct header_tensor *t, const char *what, int64_t data_bytes)
{
    int64_t size = shape_size(t->rank, t->dim);
    if (size < 0)
        return sb_fail("%s: the shape %s has more elements than any memory holds",
                       who(what, t->name).text, shape_text(t->rank, t->dim).text);
    if (t->begin > t->end)
        return sb_fail("%s: data_offsets end at %lld, before their begin %lld",
                       who(what, t->name).text, (long long)t->end, (long long)t->begin);
    int64_t bytes = size * (int64_t)t->codec->bytes;
    if (t->end - t->begin != bytes)
        return sb_fail("%s: the shape %s of %s takes %lld bytes, data_offsets span %lld",
                       who(what, t->name).text, shape_text(t->rank, t->dim).text, t->codec->name,
                       (long long)bytes, (long long)(t->end - t->begin));
    if (t->end > data_bytes)
        return sb_fail("%s: data_offsets end at %lld, but the file has %lld bytes of data",
                       who(what, t->name).text, (long long)t->end, (long long)data_bytes);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct header_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct header_tensor *)a)->name, ((const struct header_tensor *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct header_pair *)a)->key, ((const struct header_pair *)b)->key);
}

/* C gives no meaning to sorting at NULL, which an empty array is. */
static void sort(void *array, int64_t count, size_t bytes, int (*order)(const void *, const void *))
{
    if (count > 1)
        qsort(array, (size_t)count, bytes, order);
}

/* Together the tensors cover the data once. */
static bool check_places(struct header *header, const char *what, int64_t data_bytes)
{
    int64_t covered = 0;
    sort(header->tensor, header->tensors, sizeof *header->tensor, by_place);
    for (int64_t i = 0; i < header->tensors; i++) {
        const struct header_tensor *t = &header->tensor[i];
        if (t->begin != covered)
            return sb_fail("%s: data_offsets begin at %lld, where %lld is expected: %s",
                           who(what, t->name).text, (long long)t->begin, (long long)covered,
                           t->begin < covered ? "tensors overlap" : "a hole in the data");
        covered = t->end;
    }
    if (covered != data_bytes)
        return sb_fail("%s: %lld bytes at the end of the file belong to no tensor", what,
                       (long long)(data_bytes - covered));
    return true;
}

static bool check_names(struct header *header, const char *what)
{
    sort(header->tensor, header->tensors, sizeof *header->tensor, by_name);
    for (int64_t i = 1; i < header->tensors; i++)
        if (by_name(&header->tensor[i - 1], &header->tensor[i]) == 0)
            return sb_fail("%s: is there twice", who(what, header->tensor[i].name).text);
    sort(header->pair, header->pairs, sizeof *header->pair, by_key);
    for (int64_t i = 1; i < header->pairs; i++)
        if (by_key(&header->pair[i - 1], &header->pair[i]) == 0)
            return sb_fail("%s: the metadata has %s twice", what,
                           utf8_quote(header->pair[i].key).text);
    return true;
}

bool header_read(struct header *header, const char *what, size_t size, int64_t data_bytes)
{
    struct json_reader json = {.what = what, .text = header->text, .size = size};
    if (!read_all(header, &json))
        return false;
    for (int64_t i = 0; i < header->tensors; i++)
        if (!check_tensor(&header->tensor[i], what, data_bytes))
            return false;
    if (!check_names(header, what) || !check_places(header, what, data_bytes))
        return false;
    sort(header->tensor, header->tensors, sizeof *header->tensor, by_name);
    return true;
}
