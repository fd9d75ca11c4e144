/*
 * safetensors: named tensors in one file, the format of huggingface.co/docs/safetensors.
 *
 *     8 bytes     N, the length of the header, little-endian
 *     N bytes     JSON: {"__metadata__": {"key": "text", ...},
 *                        "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *     the rest    the elements, row-major, little-endian; offsets count from here
 *
 * A file may come from anywhere. Opening checks all of it but the elements: the header (at most
 * 16 MB) is strict JSON with unique names, no shape overflows, each tensor's bytes fit its shape
 * and dtype, and together they cover the data without overlap, hole or rest. Opening reads only
 * the header and takes no more than some ten times its size in memory; tensors are read when they
 * are asked for.
 */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_H
#define SOFTBACK_TENSOR_SAFETENSORS_H

#include "tensor.h"

typedef struct sb_safetensors sb_safetensors;

/* Opens a file. It may be read by several threads. */
SB_API sb_safetensors *sb_safetensors_open(const char *path);
/* The same for the bytes of a file, which the caller keeps until it is closed. */
SB_API sb_safetensors *sb_safetensors_open_memory(const void *bytes, size_t size);
SB_API void sb_safetensors_close(sb_safetensors *file); /* NULL is allowed */

/* The tensors are numbered from 0 in the order of their names' bytes. The texts and shapes live
   until the file is closed. */
SB_API int sb_safetensors_count(const sb_safetensors *file);
SB_API int sb_safetensors_find(const sb_safetensors *file, const char *name); /* -1: not there */
SB_API const char *sb_safetensors_name(const sb_safetensors *file, int i);
SB_API const char *sb_safetensors_dtype(const sb_safetensors *file, int i); /* as there: "BF16" */
SB_API int sb_safetensors_rank(const sb_safetensors *file, int i);          /* -1 on failure */
SB_API const int64_t *sb_safetensors_shape(const sb_safetensors *file, int i);

/*
 * A new tensor on the CPU, which the caller owns. F32, F64, I32 and BOOL are read as they are; F16
 * and BF16 become f32; the other integers become i32.
 *
 * Fails when no tensor has the name, on 8-bit floats, when an integer does not fit i32 or a BOOL is
 * neither 0 nor 1, and when the file has become shorter.
 */
SB_API sb_tensor *sb_safetensors_tensor(const sb_safetensors *file, const char *name);
/* The same into a tensor that is there already, on any device, with that dtype and shape. On
   failure its contents are undefined. */
SB_API bool sb_safetensors_read(const sb_safetensors *file, const char *name, sb_tensor *into);

/* The metadata: texts by key, NULL without a message when the key is not there; and all pairs by
   number, in the order of their keys' bytes, where i below the count gives the key and its text. */
SB_API const char *sb_safetensors_metadata(const sb_safetensors *file, const char *key);
SB_API int sb_safetensors_metadata_count(const sb_safetensors *file);
SB_API const char *sb_safetensors_metadata_pair(const sb_safetensors *file, int i,
                                                const char **text);

typedef struct {
    const char *name;
    const sb_tensor *tensor;
} sb_named_tensor;

/*
 * Writes n tensors, and metadata as pairs of key and text, and puts the file in the place of an old
 * one at once: when anything fails, or the process is killed, the old file stays as it was.
 *
 * The bytes depend on the arguments only: metadata in the given order; tensors as the format's own
 * library has them, wide elements first (f64, f32, i32, bool), and by name within a dtype; the
 * header padded with spaces to a multiple of 8. So all elements lie aligned.
 *
 * Fails on NULL, on a name or key that is there twice or is not UTF-8, on a tensor called
 * "__metadata__", on data freed by backward, on more than 16 MB of header, and when the file
 * cannot be written.
 */
SB_API bool sb_safetensors_save(const char *path, int n, const sb_named_tensor items[], int pairs,
                                const char *const metadata[][2]);

#endif
