/*
 * The fingerprint of a file's tensors: of their names, dtypes, shapes and bits.
 *
 * It is a sum modulo 2^64 of one term for each tensor and one for each element, which depends on
 * the tensor, the element's number and its bits. So tensors may come in any order and in parts that
 * several ranks hold, and one changed element always changes it. It finds damage and mistakes, but
 * not deliberate forgery.
 */
#ifndef SOFTBACK_MODELS_TRAINING_FINGERPRINT_H
#define SOFTBACK_MODELS_TRAINING_FINGERPRINT_H

#include "tensor/communicator.h"
#include "tensor/safetensors.h"

/* The key of the terms of a tensor's elements, and its own term. `dtype` is the file's name for it,
   "F32". */
struct fingerprint_tensor {
    uint64_t key, term;
};
struct fingerprint_tensor fingerprint_tensor(const char *name, const char *dtype, int rank,
                                             const int64_t *dim);

/* The terms of `count` elements in host memory, from the tensor's element number `first` on. */
uint64_t fingerprint_elements(uint64_t key, sb_dtype dtype, int64_t first, int64_t count,
                              const void *elements);

/* The fingerprint of a file; reads all its tensors. */
bool fingerprint_file(const sb_safetensors *file, uint64_t *fingerprint);

/* Adds up the fingerprints of ranks (NULL: this one alone), for all of them. */
bool fingerprint_sum(sb_communicator *ranks, uint64_t *fingerprint);

/* As files hold it: 16 hexadecimal digits. False where a text is something else. */
struct fingerprint_text {
    char text[17];
};
struct fingerprint_text fingerprint_text(uint64_t fingerprint);
bool fingerprint_parse(const char *text, uint64_t *fingerprint);

#endif
