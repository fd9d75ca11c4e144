/* What reading and writing safetensors files share, and what they offer to other files of the
   library beyond the public functions. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_PARTS_H
#define SOFTBACK_TENSOR_SAFETENSORS_PARTS_H

#include "tensor/shape.h"
#include "tensor/tensor.h"

struct sb_safetensors;

/* The largest header that is read or written. That of GPT-2 has 15 kB. */
enum { HEADER_LENGTH_BYTES = 8, HEADER_LIMIT = 16 << 20 };
#define HEADER_METADATA "__metadata__"

/* ---- element types: how softback reads and writes them ---- */

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

/* ---- reading ---- */

/* Receives `count` elements from number `first` on, in host memory; false, with a message,
   stops. */
typedef bool elements_see(void *context, sb_dtype dtype, int64_t first, int64_t count,
                          const void *elements);

/* Reads tensor i into an existing one, as sb_safetensors_read does, or nowhere, and shows its
   elements to `see`; either may be NULL. */
bool elements_read(const struct sb_safetensors *file, int i, sb_tensor *into, elements_see *see,
                   void *context);

/* ---- writing tensors that exist only while they are written, one at a time ---- */

struct source_item {
    const char *name;
    sb_dtype dtype;
    int rank;
    int64_t dim[SB_MAX_RANK];
};

/* The elements of item i: a new reference to a tensor of its dtype and size; NULL, with a message,
   on failure. */
typedef sb_tensor *source_fetch(void *context, int i);

struct source {
    int n;
    const struct source_item *items;
    source_fetch *fetch;
    void *context;
    bool is_new; /* the file must not exist */
};

/* Like sb_safetensors_save, but fetches items in the order of the file. With path NULL, items are
   fetched but nothing is written. */
bool source_save(const char *path, const struct source *source, int pairs,
                 const char *const metadata[][2]);

#endif
