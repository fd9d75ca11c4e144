#include "tensor/safetensors_header.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void header_free(struct header *header)
{
    json_free(&header->json);
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

static bool read_metadata(struct header *header, const char *what, json_t *metadata)
{
    const char *key;
    json_t *text;
    if (!json_is_object(metadata))
        return sb_fail("%s: " HEADER_METADATA " is not an object", what);
    json_object_foreach(metadata, key, text)
    {
        if (!json_is_string(text))
            return sb_fail("%s: the metadata's %s is not a string", what, utf8_quote(key).text);
        if (!memory_room(&header->pair, header->pairs, &header->pair_room, sizeof *header->pair))
            return sb_fail("%s: out of memory for its metadata", what);
        header->pair[header->pairs++] = (struct header_pair){key, json_string_value(text)};
    }
    return true;
}

static bool read_dtype(struct header_tensor *tensor, const char *what, const json_t *dtype)
{
    const char *name = json_string_value(dtype);
    if (!name)
        return sb_fail("%s: the dtype is not a string", who(what, tensor->name).text);
    tensor->codec = codec_find(name);
    return tensor->codec || sb_fail("%s: the dtype %s is unknown", who(what, tensor->name).text,
                                    utf8_quote(name).text);
}

/* Reads an array of at most `most` integers; returns their number, or -1 on failure. */
static int read_numbers(struct header_tensor *tensor, const char *what, const json_t *array,
                        const char *name, int most, int64_t *number)
{
    const int failed = -1;
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > (size_t)most) {
        sb_fail("%s: %s is not an array of at most %d numbers", who(what, tensor->name).text, name,
                most);
        return failed;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        number[i] = json_integer_value(item);
        if (!json_is_integer(item) || number[i] < 0) {
            sb_fail("%s: %s[%zu] is not an integer >= 0", who(what, tensor->name).text, name, i);
            return failed;
        }
    }
    return (int)count;
}

static bool read_tensor(struct header *header, const char *what, const char *name,
                        const json_t *json)
{
    struct header_tensor tensor = {.name = name};
    const json_t *dtype = json_object_get(json, "dtype"), *shape = json_object_get(json, "shape");
    const json_t *offsets = json_object_get(json, "data_offsets");
    int64_t offset[2];
    if (!dtype || !shape || !offsets)
        return sb_fail("%s: has no %s", who(what, name).text,
                       !dtype   ? "dtype"
                       : !shape ? "shape"
                                : "data_offsets");
    if (json_object_size(json) > 3)
        return sb_fail("%s: has more than dtype, shape and data_offsets", who(what, name).text);
    if (!read_dtype(&tensor, what, dtype))
        return false;
    tensor.rank = read_numbers(&tensor, what, shape, "shape", SB_MAX_RANK, tensor.dim);
    int ends =
        tensor.rank < 0 ? -1 : read_numbers(&tensor, what, offsets, "data_offsets", 2, offset);
    if (ends < 0)
        return false;
    if (ends != 2)
        return sb_fail("%s: data_offsets are not two numbers", who(what, name).text);
    tensor.begin = offset[0];
    tensor.end = offset[1];
    if (!memory_room(&header->tensor, header->tensors, &header->tensor_room, sizeof tensor))
        return sb_fail("%s: out of memory for %lld tensors", what, (long long)header->tensors + 1);
    header->tensor[header->tensors++] = tensor;
    return true;
}

static bool read_all(struct header *header, const char *what)
{
    const char *name;
    json_t *value;
    if (!json_is_object(header->json.value))
        return sb_fail("%s: its header is not an object", what);
    json_object_foreach(header->json.value, name, value)
    {
        bool is_metadata = strcmp(name, HEADER_METADATA) == 0;
        if (!(is_metadata ? read_metadata(header, what, value)
                          : read_tensor(header, what, name, value)))
            return false;
    }
    return true;
}

/* Checks one tensor: the size of its elements equals the range of its offsets. */
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

/* An empty array is NULL, for which qsort is undefined. */
static void sort(void *array, int64_t count, size_t bytes, int (*order)(const void *, const void *))
{
    if (count > 1)
        qsort(array, (size_t)count, bytes, order);
}

/* Checks that the tensors cover the data exactly once. */
static bool check_places(struct header *header, const char *what, int64_t data_bytes)
{
    int64_t covered = 0;
    sort(header->tensor, header->tensors, sizeof *header->tensor, by_place);
    for (int64_t i = 0; i < header->tensors; i++) {
        const struct header_tensor *t = &header->tensor[i];
        if (t->begin != covered)
            return sb_fail("%s: data_offsets begin at %lld, where %lld is expected: %s",
                           who(what, t->name).text, (long long)t->begin, (long long)covered,
                           t->begin < covered ? "tensors overlap" : "a gap in the data");
        covered = t->end;
    }
    if (covered != data_bytes)
        return sb_fail("%s: %lld bytes at the end of the file belong to no tensor", what,
                       (long long)(data_bytes - covered));
    return true;
}

bool header_read(struct header *header, const char *what, const char *text, size_t size,
                 int64_t data_bytes)
{
    if (!json_read(&header->json, what, text, size) || !read_all(header, what))
        return false;
    for (int64_t i = 0; i < header->tensors; i++)
        if (!check_tensor(&header->tensor[i], what, data_bytes))
            return false;
    if (!check_places(header, what, data_bytes))
        return false;
    sort(header->tensor, header->tensors, sizeof *header->tensor, by_name);
    sort(header->pair, header->pairs, sizeof *header->pair, by_key);
    return true;
}
