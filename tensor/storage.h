/* The internals of devices and tensors, for the library's own files. */
#ifndef SOFTBACK_TENSOR_STORAGE_H
#define SOFTBACK_TENSOR_STORAGE_H

#include "tensor/plugin.h"
#include "tensor/pool.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"
#include <stdatomic.h>

enum device_kind { DEVICE_CPU, DEVICE_CUDA, DEVICE_KINDS };

struct sb_device {
    enum device_kind kind;
    const char *name;
    struct pool *pool;
    struct pool *staging;    /* pinned host memory for transfers; NULL on the CPU */
    const char *description; /* "NVIDIA H200, ..." */
    /* Work may be queued; the next download or synchronisation reports its failure. */
    bool (*upload)(void *to, const void *host, size_t bytes);
    bool (*download)(void *host, const void *from, size_t bytes);
    bool (*copy)(void *to, const void *from, size_t bytes);
    bool (*zero)(void *to, size_t bytes);
    bool (*synchronize)(void);
    /* Before a thread launches kernels: CUDA has a present device for each thread. NULL on the CPU.
     */
    void (*enter)(void);
    /* The row of kernels of an operation for a real dtype, or NULL (ops/kernel.h). The CPU has no
       such function, since its rows are part of the library. */
    const void *(*row)(const char *operation, sb_dtype dtype);
    /* CUDA graphs; NULL if not supported. While private_memory is on, new tensors use memory that
       is reserved for a graph. */
    const struct plugin_graphs *graphs;
    void (*private_memory)(bool on);
    /* Fills a block with 0xff; tests install it in the pool. */
    void (*poison)(void *block, size_t bytes);
};

/*
 * A tensor either owns a block, of its device's memory or the caller's, or is a view of a tensor
 * that does (`base`).
 * The owner's `holders` counts the owner and the views whose data is not freed; at 0 the block is
 * freed.
 */
struct sb_tensor {
    atomic_int refs;
    sb_dtype dtype;
    const sb_device *device;
    int rank;
    int64_t dim[SB_MAX_RANK];
    void *data; /* NULL once it is freed (data_gone) */
    sb_tensor *base;
    atomic_int holders;
    sb_tensor *grad;
    bool requires_grad;
    sb_tensor
        *neighbour; /* the next output in the same block, in a ring (autograd/node.h), or NULL */
    uint64_t tape;  /* serial number of the tape whose operation made it; 0: a leaf */
    _Atomic uint64_t
        claimed; /* of a leaf: the tape whose backward adds to grad (autograd/backward.c), or 0 */
    bool keep;   /* backward keeps its data and gradient */
    bool data_gone;
    sb_tensor *rounded; /* bf16 with the same values, from which data can be made again, or NULL */
    sb_tensor *rounds;  /* of a bf16 copy on a tape: the f32 leaf that it rounds; or NULL */
    bool grad_current;  /* grad holds the current gradient; otherwise its contents are stale */
    uint64_t written;   /* of the owner: the count of the last write (tensor_note_write) */
    const char *origin; /* the operation that made it, for messages; static text or NULL */
    /* Called instead of freeing data that is the caller's (sb_tensor_wrap). */
    void (*release)(void *context);
    void *release_context;
};

/* Whether sb_device_cuda was called, which opens the device if there is one. */
bool device_cuda_sought(void);

/* A tensor with undefined contents. The caller owns it. */
sb_tensor *tensor_new(const char *who, const sb_device *device, sb_dtype dtype, int rank,
                      const int64_t *dim);

/*
 * The number of writes of elements, of all tensors, that no operation made: by sb_tensor_write,
 * sb_tensor_set, optimisers and files. A node notes it, and so backward finds inputs that were
 * changed after forward.
 */
extern atomic_uint_fast64_t tensor_write_count;
static inline uint64_t tensor_writes(void)
{
    return atomic_load(&tensor_write_count);
}
static inline void tensor_note_write(sb_tensor *t)
{
    (t->base ? t->base : t)->written = atomic_fetch_add(&tensor_write_count, 1) + 1;
}
static inline uint64_t tensor_written(const sb_tensor *t)
{
    return t->base ? t->base->written : t->written;
}
/* For a caller that has put back the elements as they were at this count. */
static inline void tensor_forget_writes(sb_tensor *t, uint64_t written)
{
    (t->base ? t->base : t)->written = written;
}

/* t itself if it is on the device; else a copy there, and t is released. NULL when t is NULL or
   cannot be copied; t is released then too. */
sb_tensor *tensor_moved(sb_tensor *t, const sb_device *device);

/* A view of t's data from element `offset` on, with its own shape. The caller owns it. */
sb_tensor *tensor_view(const char *who, sb_tensor *t, int64_t offset, int rank, const int64_t *dim);

/* Frees the data but not the tensor; reading the data is an error from now on. */
void tensor_free_data(sb_tensor *t);

/* Where t->rounded holds the values of t (f32, the owner of its data, on the CPU) and t's data is
   freed, makes it again. False, with a message, when out of memory. */
bool tensor_restore(sb_tensor *t);

/* Frees the gradient. If it is a view of a flat buffer of parameters, marks it as stale instead. */
void tensor_drop_grad(sb_tensor *t);

/* Checks that t's data is not freed; `who` opens the message. */
bool tensor_readable(const char *who, const sb_tensor *t);

/* Copies `count` elements from index `start` on to `values`, or from `values`, as doubles. */
bool tensor_read_part(const sb_tensor *t, int64_t start, int64_t count, double *values);
bool tensor_write_part(sb_tensor *t, int64_t start, int64_t count, const double *values);

bool tensor_zero(sb_tensor *t);

/* The shape was checked when the tensor was made, so this product cannot overflow. */
static inline int64_t tensor_size(const sb_tensor *t)
{
    int64_t size = 1;
    for (int i = 0; i < t->rank; i++)
        size *= t->dim[i];
    return size;
}

static inline size_t tensor_bytes(const sb_tensor *t)
{
    return (size_t)tensor_size(t) * sb_dtype_bytes(t->dtype);
}

/* The address of an element, by its row-major index. */
static inline void *tensor_element(const sb_tensor *t, int64_t index)
{
    return (char *)t->data + (size_t)index * sb_dtype_bytes(t->dtype);
}

static inline struct shape_text tensor_shape(const sb_tensor *t)
{
    return shape_text(t->rank, t->dim);
}

#endif
