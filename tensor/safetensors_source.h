/* Writes files from tensors that exist only while they are written, one at a time. */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_SOURCE_H
#define SOFTBACK_TENSOR_SAFETENSORS_SOURCE_H

#include "tensor/shape.h"
#include "tensor/tensor.h"

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
