#include "tensor/safetensors.h"
#include "tensor/failure.h"
#include "tensor/file.h"
#include "tensor/memory.h"
#include "tensor/safetensors_elements.h"
#include "tensor/safetensors_header.h"
#include "tensor/storage.h"
#include "tensor/utf8.h"
#include <string.h>

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
    header_free(&file->header);
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
        return sb_fail("%s: not a safetensors file: its first %d bytes are no length of a header, "
                       "which has at most %d bytes",
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

/* The tensor of this name; fails if there is none or its elements cannot be read. */
static const struct header_tensor *readable(const char *who, const sb_safetensors *file,
                                            const char *name)
{
    if (!file || !name)
        return fail_null(who, file ? "name" : "file");
    int i = sb_safetensors_find(file, name);
    if (i < 0)
        return sb_fail("%s: has no tensor %s", file->label, utf8_quote(name).text);
    const struct header_tensor *stored = &file->header.tensor[i];
    if (!stored->codec->read)
        return sb_fail("%s: tensor %s: elements of %s cannot be read", file->label,
                       utf8_quote(name).text, stored->codec->name);
    return stored;
}

static bool read_elements(const sb_safetensors *file, const struct header_tensor *stored,
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
    bool ok = read_elements(file, stored, see, context, &(struct buffers){both, both + bytes});
    memory_free(both);
    return ok;
}

bool elements_pass(const sb_safetensors *file, int i, elements_see *see, void *context)
{
    const char *name = sb_safetensors_name(file, i);
    const struct header_tensor *stored = name ? readable("elements_pass", file, name) : NULL;
    return stored && pass(file, stored, see, context);
}

static bool upload(void *into_, sb_dtype dtype, int64_t first, int64_t count, const void *elements)
{
    const size_t width = sb_dtype_bytes(dtype);
    sb_tensor *into = into_;
    return into->device->upload((char *)into->data + (size_t)first * width, elements,
                                (size_t)count * width);
}

/* Whether the file has the elements as the tensor's memory has them. */
static bool is_verbatim(const sb_safetensors *file, const struct codec *codec, const sb_tensor *t)
{
    const int one = 1;
    return file->file && t->device == sb_device_cpu() && *(const char *)&one == 1 &&
           (strcmp(codec->name, "F32") == 0 || strcmp(codec->name, "F64") == 0);
}

bool sb_safetensors_read(const sb_safetensors *file, const char *name, sb_tensor *into)
{
    const struct header_tensor *stored = readable("safetensors_read", file, name);
    if (!stored)
        return false;
    if (!into)
        return fail_null("safetensors_read", "into");
    if (!tensor_readable("safetensors_read", into))
        return false;
    if (into->dtype != stored->codec->dtype ||
        !shape_equal(into->rank, into->dim, stored->rank, stored->dim))
        return sb_fail("%s: tensor %s: is %s %s, into is %s %s; they must be equal", file->label,
                       utf8_quote(name).text, stored->codec->name,
                       shape_text(stored->rank, stored->dim).text, sb_dtype_name(into->dtype),
                       tensor_shape(into).text);
    tensor_note_write(into);
    if (is_verbatim(file, stored->codec, into))
        return file_read(file->file, file->data + stored->begin, into->data,
                         (size_t)(stored->end - stored->begin));
    return pass(file, stored, upload, into);
}

sb_tensor *sb_safetensors_tensor(const sb_safetensors *file, const char *name)
{
    const struct header_tensor *stored = readable("safetensors_tensor", file, name);
    if (!stored)
        return NULL;
    sb_tensor *t = tensor_new("safetensors_tensor", sb_device_in_use(), stored->codec->dtype,
                              stored->rank, stored->dim);
    if (!t || sb_safetensors_read(file, name, t))
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
