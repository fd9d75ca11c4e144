/* The element types of safetensors files, and how softback reads and writes them. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_CODEC_H
#define SOFTBACK_TENSOR_SAFETENSORS_CODEC_H

#include "tensor/dtype.h"
#include <stddef.h>
#include <stdint.h>

/* Elements are converted in chunks, so that the buffers stay in the cache; at most 8 bytes each. */
enum { CODEC_ELEMENTS = 8192, CODEC_BYTES = 8 * CODEC_ELEMENTS };

struct codec {
    const char *name; /* in the file */
    size_t bytes;     /* of an element in the file */
    sb_dtype dtype;   /* of the tensor that it is read into */
    /* Converts n elements to that dtype. Returns the index of the first one that is out of range,
       or -1. NULL: such elements cannot be read. */
    int64_t (*read)(int64_t n, const unsigned char *from, void *to);
};

/* The codec of a dtype's name in files; NULL if the format has no such dtype. */
const struct codec *codec_find(const char *name);

/* The codec that writes a dtype without conversion. */
const struct codec *codec_of(sb_dtype dtype);

/* The integer at `from`, for the message when it is out of range. */
struct codec_text {
    char text[24];
};
struct codec_text codec_show(const struct codec *codec, const unsigned char *from);

/* Writes n elements, little-endian. */
void codec_write(sb_dtype dtype, int64_t n, const void *from, unsigned char *to);

#endif
