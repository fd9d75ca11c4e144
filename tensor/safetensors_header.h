/* The header of a safetensors file, checked before it is used. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_HEADER_H
#define SOFTBACK_TENSOR_SAFETENSORS_HEADER_H

#include "tensor/json.h"
#include "tensor/safetensors_codec.h"
#include "tensor/shape.h"

/* The largest header that is read or written. That of GPT-2 has 15 kB. */
enum { HEADER_LENGTH_BYTES = 8, HEADER_LIMIT = 16 << 20 };
#define HEADER_METADATA "__metadata__"

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

/* Parses a text of `size` bytes, and checks it against the number of data bytes in the file. `what`
   opens the messages. The caller frees the header, on failure too. */
bool header_read(struct header *header, const char *what, const char *text, size_t size,
                 int64_t data_bytes);

void header_free(struct header *header);

#endif
