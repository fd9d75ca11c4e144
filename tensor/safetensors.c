#include "tensor/safetensors.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/json.h"
#include "tensor/memory.h"
#include "tensor/safetensors_parts.h"
#include "tensor/storage.h"
#include "tensor/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header, checked before it is used ---- */

struct header_tensor {
    const char *name;
    const struct codec *codec;
    int rank;
    int64_t dim[SB_MAX_RANK];
    int64_t begin, end; /* in bytes, from the end of the header */
};

struct header_pair {
    const char *key, *text;
};

/* `json` owns all strings. Tensors are sorted by name, pairs by key. */
struct header {
    struct json json;
    struct header_tensor *tensor;
    int64_t tensors, tensor_room;
    struct header_pair *pair;
    int64_t pairs, pair_room;
};

/* The beginning of messages about one tensor. */
struct about {
    char text[640];
};

static struct about about(const char *what, const char *name)
{
    struct about about;
    snprintf(about.text, sizeof about.text, "%s: tensor %s", what, utf8_quote(name).text);
    return about;
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
        return sb_fail("%s: the dtype is not a string", about(what, tensor->name).text);
    tensor->codec = codec_find(name);
    return tensor->codec || sb_fail("%s: the dtype %s is unknown", about(what, tensor->name).text,
                                    utf8_quote(name).text);
}

/* Reads an array of at most `most` integers; returns their number, or -1 on failure. */
static int read_numbers(struct header_tensor *tensor, const char *what, const json_t *array,
                        const char *name, int most, int64_t *number)
{
    const int failed = -1;
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > (size_t)most) {
        sb_fail("%s: %s is not an array of at most %d numbers", about(what, tensor->name).text,
                name, most);
        return failed;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        number[i] = json_integer_value(item);
        if (!json_is_integer(item) || number[i] < 0) {
            sb_fail("%s: %s[%zu] is not an integer >= 0", about(what, tensor->name).text, name, i);
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
        return sb_fail("%s: has no %s", about(what, name).text,
                       !dtype   ? "dtype"
                       : !shape ? "shape"
                                : "data_offsets");
    if (json_object_size(json) > 3)
        return sb_fail("%s: has more than dtype, shape and data_offsets", about(what, name).text);
    if (!read_dtype(&tensor, what, dtype))
        return false;
    tensor.rank = read_numbers(&tensor, what, shape, "shape", SB_MAX_RANK, tensor.dim);
    int ends =
        tensor.rank < 0 ? -1 : read_numbers(&tensor, what, offsets, "data_offsets", 2, offset);
    if (ends < 0)
        return false;
    if (ends != 2)
        return sb_fail("%s: data_offsets are not two numbers", about(what, name).text);
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
                       about(what, t->name).text, shape_text(t->rank, t->dim).text);
    if (t->begin > t->end)
        return sb_fail("%s: data_offsets end at %lld, before their begin %lld",
                       about(what, t->name).text, (long long)t->end, (long long)t->begin);
    int64_t bytes = size * (int64_t)t->codec->bytes;
    if (t->end - t->begin != bytes)
        return sb_fail("%s: the shape %s of %s takes %lld bytes, data_offsets span %lld",
                       about(what, t->name).text, shape_text(t->rank, t->dim).text, t->codec->name,
                       (long long)bytes, (long long)(t->end - t->begin));
    if (t->end > data_bytes)
        return sb_fail("%s: data_offsets end at %lld, but the file has %lld bytes of data",
                       about(what, t->name).text, (long long)t->end, (long long)data_bytes);
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
                           about(what, t->name).text, (long long)t->begin, (long long)covered,
                           t->begin < covered ? "tensors overlap" : "a gap in the data");
        covered = t->end;
    }
    if (covered != data_bytes)
        return sb_fail("%s: %lld bytes at the end of the file belong to no tensor", what,
                       (long long)(data_bytes - covered));
    return true;
}

/* Parses a text of `size` bytes, and checks it against the number of data bytes in the file. `what`
   opens the messages. The caller frees the header, on failure too. */
static bool header_read(struct header *header, const char *what, const char *text, size_t size,
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

/* ---- the file ---- */

struct sb_safetensors {
    char *label; /* opens messages: safetensors: "model.safetensors" */
    struct file *file;
    const unsigned char *memory; /* instead of a file */
    int64_t data;                /* offset of the data */
    struct header header;
};

/* Buffers between the file and a tensor. */
struct buffers {
    unsigned char *stored, *element;
};

void sb_safetensors_close(sb_safetensors *file)
{
    if (!file)
        return;
    json_free(&file->header.json);
    memory_free(file->header.tensor);
    memory_free(file->header.pair);
    file_close(file->file);
    memory_free(file->label);
    memory_free(file);
}

/* The given bytes of the file, in place or in `buffer`; NULL on failure. */
static const unsigned char *bytes_at(const sb_safetensors *file, int64_t offset, size_t size,
                                     unsigned char *buffer)
{
    if (!file->file)
        return file->memory + offset;
    return file_read(file->file, offset, buffer, size) ? buffer : NULL;
}

static bool read_header_text(sb_safetensors *file, size_t size, int64_t data_bytes)
{
    unsigned char *buffer = file->file ? memory_new(size) : NULL;
    if (file->file && !buffer)
        return sb_fail("%s: out of memory for its header", file->label);
    const unsigned char *text = bytes_at(file, HEADER_LENGTH_BYTES, size, buffer);
    bool ok = text && header_read(&file->header, file->label, (const char *)text, size, data_bytes);
    memory_free(buffer);
    return ok;
}

static bool read_header(sb_safetensors *file, int64_t file_bytes)
{
    unsigned char buffer[HEADER_LENGTH_BYTES];
    if (file_bytes < HEADER_LENGTH_BYTES)
        return sb_fail("%s: has %lld bytes, too few for the length of a header", file->label,
                       (long long)file_bytes);
    const unsigned char *length = bytes_at(file, 0, HEADER_LENGTH_BYTES, buffer);
    if (!length)
        return false;
    uint64_t size = 0;
    for (int i = HEADER_LENGTH_BYTES - 1; i >= 0; i--)
        size = size << 8 | length[i];
    if (size > HEADER_LIMIT)
        return sb_fail(
            "%s: not a safetensors file, as models are: its first %d bytes are no length "
            "of a header, which is at most %d",
            file->label, HEADER_LENGTH_BYTES, HEADER_LIMIT);
    file->data = HEADER_LENGTH_BYTES + (int64_t)size;
    if (file->data > file_bytes)
        return sb_fail("%s: a header of %llu bytes, but only %lld follow", file->label,
                       (unsigned long long)size, (long long)file_bytes - HEADER_LENGTH_BYTES);
    return read_header_text(file, (size_t)size, file_bytes - file->data);
}

static sb_safetensors *new_file(const char *name)
{
    sb_safetensors *file = memory_new(sizeof *file);
    if (file)
        file->label = memory_format("safetensors: %s", name);
    if (file && file->label)
        return file;
    sb_safetensors_close(file);
    return sb_fail("safetensors: out of memory");
}

sb_safetensors *sb_safetensors_open(const char *path)
{
    if (!path)
        return fail_null("safetensors_open", "path");
    sb_safetensors *file = new_file(utf8_quote(path).text);
    if (!file)
        return NULL;
    file->file = file_open("safetensors", path);
    if (file->file && read_header(file, file_size(file->file)))
        return file;
    sb_safetensors_close(file);
    return NULL;
}

sb_safetensors *sb_safetensors_open_memory(const void *bytes, size_t size)
{
    if (!bytes)
        return fail_null("safetensors_open_memory", "bytes");
    sb_safetensors *file = new_file("the file in memory");
    if (!file)
        return NULL;
    file->memory = bytes;
    if (read_header(file, (int64_t)size))
        return file;
    sb_safetensors_close(file);
    return NULL;
}

int sb_safetensors_count(const sb_safetensors *file)
{
    return file ? (int)file->header.tensors : 0;
}

int sb_safetensors_find(const sb_safetensors *file, const char *name)
{
    int64_t low = 0, high = file && name ? file->header.tensors : 0;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(file->header.tensor[middle].name, name);
        if (order == 0)
            return (int)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* Tensor i; NULL, with `who` opening the message, if i is out of range. */
static const struct header_tensor *tensor_at(const char *who, const sb_safetensors *file, int i)
{
    if (!file)
        return fail_null(who, "file");
    if (i < 0 || i >= file->header.tensors)
        return sb_fail("%s: %d is not in 0..%lld", who, i, (long long)file->header.tensors - 1);
    return &file->header.tensor[i];
}

const char *sb_safetensors_name(const sb_safetensors *file, int i)
{
    const struct header_tensor *stored = tensor_at("safetensors_name", file, i);
    return stored ? stored->name : NULL;
}

const char *sb_safetensors_dtype(const sb_safetensors *file, int i)
{
    const struct header_tensor *stored = tensor_at("safetensors_dtype", file, i);
    return stored ? stored->codec->name : NULL;
}

int sb_safetensors_rank(const sb_safetensors *file, int i)
{
    const struct header_tensor *stored = tensor_at("safetensors_rank", file, i);
    return stored ? stored->rank : -1;
}

const int64_t *sb_safetensors_shape(const sb_safetensors *file, int i)
{
    const struct header_tensor *stored = tensor_at("safetensors_shape", file, i);
    return stored ? stored->dim : NULL;
}

/* The number of the tensor of this name; -1: there is none. */
static int number_of(const char *who, const sb_safetensors *file, const char *name)
{
    if (!file || !name)
        fail_null(who, file ? "name" : "file");
    const int i = sb_safetensors_find(file, name);
    if (i < 0 && file && name)
        sb_fail("%s: has no tensor %s", file->label, utf8_quote(name).text);
    return i;
}

static bool read_chunks(const sb_safetensors *file, const struct header_tensor *stored,
                        elements_see *see, void *context, const struct buffers *buffers)
{
    const struct codec *codec = stored->codec;
    const int64_t size = shape_size(stored->rank, stored->dim);
    for (int64_t i = 0, count; i < size; i += count) {
        count = size - i < CODEC_ELEMENTS ? size - i : CODEC_ELEMENTS;
        int64_t offset = file->data + stored->begin + i * (int64_t)codec->bytes;
        const unsigned char *from =
            bytes_at(file, offset, (size_t)count * codec->bytes, buffers->stored);
        if (!from)
            return false;
        int64_t bad = codec->read(count, from, buffers->element);
        if (bad >= 0)
            return sb_fail("%s: tensor %s: element %lld is %s, which %s cannot represent",
                           file->label, utf8_quote(stored->name).text, (long long)(i + bad),
                           codec_show(codec, from + (size_t)bad * codec->bytes).text,
                           sb_dtype_name(codec->dtype));
        if (!see(context, codec->dtype, i, count, buffers->element))
            return false;
    }
    return true;
}

static bool pass(const sb_safetensors *file, const struct header_tensor *stored, elements_see *see,
                 void *context)
{
    const int64_t size = shape_size(stored->rank, stored->dim); /* a small tensor needs little */
    const size_t bytes = size < CODEC_ELEMENTS ? (size_t)(size + 1) * 8 : CODEC_BYTES;
    unsigned char *both = memory_new(2 * bytes);
    if (!both)
        return sb_fail("%s: out of memory for buffers", file->label);
    bool ok = read_chunks(file, stored, see, context, &(struct buffers){both, both + bytes});
    memory_free(both);
    return ok;
}

/* Whether the file has the elements as the tensor's memory has them. */
static bool is_verbatim(const sb_safetensors *file, const struct codec *codec, const sb_tensor *t)
{
    const int one = 1;
    return file->file && t->device == sb_device_cpu() && *(const char *)&one == 1 &&
           (strcmp(codec->name, "F32") == 0 || strcmp(codec->name, "F64") == 0);
}

/* Whether the elements of a tensor can be read, and into this one, unless NULL. */
static bool is_readable(const sb_safetensors *file, const struct header_tensor *stored,
                        const sb_tensor *into)
{
    if (!stored->codec->read)
        return sb_fail("%s: tensor %s: elements of %s cannot be read", file->label,
                       utf8_quote(stored->name).text, stored->codec->name);
    if (!into)
        return true;
    if (!tensor_readable("safetensors_read", into))
        return false;
    return (into->dtype == stored->codec->dtype &&
            shape_equal(into->rank, into->dim, stored->rank, stored->dim)) ||
           sb_fail("%s: tensor %s: is %s %s, into is %s %s; they must be equal", file->label,
                   utf8_quote(stored->name).text, stored->codec->name,
                   shape_text(stored->rank, stored->dim).text, sb_dtype_name(into->dtype),
                   tensor_shape(into).text);
}

/* Where elements go. */
struct receivers {
    sb_tensor *into;
    elements_see *see;
    void *context;
};

static bool receive(void *receivers, sb_dtype dtype, int64_t first, int64_t count,
                    const void *elements)
{
    const struct receivers *r = receivers;
    const size_t width = sb_dtype_bytes(dtype);
    return (!r->see || r->see(r->context, dtype, first, count, elements)) &&
           (!r->into || r->into->device->upload((char *)r->into->data + (size_t)first * width,
                                                elements, (size_t)count * width));
}

bool elements_read(const sb_safetensors *file, int i, sb_tensor *into, elements_see *see,
                   void *context)
{
    const struct header_tensor *stored = &file->header.tensor[i];
    struct receivers r = {into, see, context};
    if (!is_readable(file, stored, into))
        return false;
    if (into)
        tensor_note_write(into);
    if (!into || !is_verbatim(file, stored->codec, into))
        return pass(file, stored, receive, &r);
    return file_read(file->file, file->data + stored->begin, into->data,
                     (size_t)(stored->end - stored->begin)) &&
           (!see || see(context, into->dtype, 0, tensor_size(into), into->data));
}

bool sb_safetensors_read(const sb_safetensors *file, const char *name, sb_tensor *into)
{
    const int i = number_of("safetensors_read", file, name);
    return i >= 0 && (into || fail_null("safetensors_read", "into")) &&
           elements_read(file, i, into, NULL, NULL);
}

sb_tensor *sb_safetensors_tensor(const sb_safetensors *file, const char *name)
{
    const int i = number_of("safetensors_tensor", file, name);
    const struct header_tensor *stored = i >= 0 ? &file->header.tensor[i] : NULL;
    if (!stored || !is_readable(file, stored, NULL))
        return NULL;
    sb_tensor *t = tensor_new("safetensors_tensor", sb_device_in_use(), stored->codec->dtype,
                              stored->rank, stored->dim);
    if (!t || elements_read(file, i, t, NULL, NULL))
        return t;
    sb_tensor_release(t);
    return NULL;
}

const char *sb_safetensors_metadata(const sb_safetensors *file, const char *key)
{
    if (!file || !key)
        return fail_null("safetensors_metadata", file ? "key" : "file");
    for (int64_t i = 0; i < file->header.pairs; i++)
        if (strcmp(file->header.pair[i].key, key) == 0)
            return file->header.pair[i].text;
    return NULL;
}

int sb_safetensors_metadata_count(const sb_safetensors *file)
{
    return file ? (int)file->header.pairs : 0;
}

const char *sb_safetensors_metadata_pair(const sb_safetensors *file, int i, const char **text)
{
    if (!file || !text)
        return fail_null("safetensors_metadata_pair", file ? "text" : "file");
    if (i < 0 || i >= file->header.pairs)
        return sb_fail("safetensors_metadata_pair: %d is not in 0..%lld", i,
                       (long long)file->header.pairs - 1);
    *text = file->header.pair[i].text;
    return file->header.pair[i].key;
}
