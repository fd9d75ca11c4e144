/*
 * safetensors: named tensors in one file, the format of huggingface.co/docs/safetensors.
 *
 *     8 bytes     N, the length of the header, little-endian
 *     N bytes     JSON: {"__metadata__": {"key": "text", ...},
 *                        "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *     the rest    the elements, row-major, little-endian; offsets count from here
 *
 * Files are untrusted. Opening one checks everything except the elements: the header (at most
 * 16 MB) is strict JSON with unique names, no shape overflows, the bytes of each tensor match its
 * shape and dtype, and together they cover the data without overlap or gap. Opening reads only the
 * header and needs about ten times its size in memory; elements are read on request.
 */
#ifndef SOFTBACK_TENSOR_SAFETENSORS_H
#define SOFTBACK_TENSOR_SAFETENSORS_H

#include "tensor.h"

typedef struct sb_safetensors sb_safetensors;

/* Opens a file. Several threads may read it. */
SB_API sb_safetensors *sb_safetensors_open(const char *path);
/* The same for a file in memory, which the caller keeps until sb_safetensors_close. */
SB_API sb_safetensors *sb_safetensors_open_memory(const void *bytes, size_t size);
SB_API void sb_safetensors_close(sb_safetensors *file); /* NULL is allowed */

/* Tensors are numbered from 0 in the byte order of their names. Strings and shapes are valid until
   the file is closed. */
SB_API int sb_safetensors_count(const sb_safetensors *file);
SB_API int sb_safetensors_find(const sb_safetensors *file,
                               const char *name); /* -1 if there is none */
SB_API const char *sb_safetensors_name(const sb_safetensors *file, int i);
SB_API const char *sb_safetensors_dtype(const sb_safetensors *file,
                                        int i);                    /* as in the file: "BF16" */
SB_API int sb_safetensors_rank(const sb_safetensors *file, int i); /* -1 on failure */
SB_API const int64_t *sb_safetensors_shape(const sb_safetensors *file, int i);

/*
 * Reads a tensor into a new tensor on the CPU, which the caller owns. F32, F64, I32 and BOOL keep
 * their dtype; F16 and BF16 become f32; other integers become i32.
 *
 * Fails when no tensor has the name, when its elements are 8-bit floats, when an integer does not
 * fit i32, when a BOOL is neither 0 nor 1, and when the file was truncated.
 */
SB_API sb_tensor *sb_safetensors_tensor(const sb_safetensors *file, const char *name);
/* Reads into an existing tensor of that dtype and shape, on any device. On failure its contents are
   undefined. */
SB_API bool sb_safetensors_read(const sb_safetensors *file, const char *name, sb_tensor *into);

/* Metadata: the value of a key, or NULL without a message if there is none; and pair number i in
   the byte order of keys: returns the key, and its value in *text. */
SB_API const char *sb_safetensors_metadata(const sb_safetensors *file, const char *key);
SB_API int sb_safetensors_metadata_count(const sb_safetensors *file);
SB_API const char *sb_safetensors_metadata_pair(const sb_safetensors *file, int i,
                                                const char **text);

typedef struct {
    const char *name;
    const sb_tensor *tensor;
} sb_named_tensor;

/*
 * Writes n tensors, and metadata as pairs of key and value. An existing file is replaced
 * atomically: when anything fails, or the process is killed, it stays unchanged.
 *
 * The bytes depend on the arguments only: metadata in the given order; tensors in the order of the
 * format's own library, wide elements first (f64, f32, i32, bf16, bool), then by name; the header
 * padded with spaces to a multiple of 8, so that all elements are aligned.
 *
 * Fails when an argument is NULL, when a name or key occurs twice or is not UTF-8, when a tensor is
 * called "__metadata__", when backward has freed the data of a tensor, when the header exceeds
 * 16 MB, and when the file cannot be written.
 */
SB_API bool sb_safetensors_save(const char *path, int n, const sb_named_tensor items[], int pairs,
                                const char *const metadata[][2]);

#endif
