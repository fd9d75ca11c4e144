/* The element types of safetensors files, and how softback reads and writes them. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_CODEC_H
#define SOFTBACK_TENSOR_SAFETENSORS_CODEC_H

#include "tensor/dtype.h"
#include <stddef.h>
#include <stdint.h>

/* Elements at a time, so that the buffers on the way stay in the cache; 8 bytes each at most. */
enum { CODEC_ELEMENTS = 8192, CODEC_BYTES = 8 * CODEC_ELEMENTS };

struct codec {
    const char *name; /* in the file */
    size_t bytes;     /* of an element there */
    sb_dtype dtype;   /* that it is read as */
    /* Reads n elements to an array of that dtype. Returns the position of the first one that the
       dtype cannot hold, or -1. NULL: such elements cannot be read. */
    int64_t (*read)(int64_t n, const unsigned char *from, void *to);
};

/* By a file's name for it; NULL when it is not one of the format's. */
const struct codec *codec_find(const char *name);

/* The one that writes a dtype as it is. */
const struct codec *codec_of(sb_dtype dtype);

/* The whole number at `from`, for the message when it cannot be read. */
struct codec_text {
    char text[24];
};
struct codec_text codec_show(const struct codec *codec, const unsigned char *from);

/* Writes n elements, little-endian. */
void codec_write(sb_dtype dtype, int64_t n, const void *from, unsigned char *to);

#endif
