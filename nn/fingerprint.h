/*
 * The fingerprint of tensors: of their names, dtypes, shapes and bits.
 *
 * It is a sum modulo 2^64 of one term for each tensor and one for each element, which depends on
 * the tensor, the element's number and its bits. So tensors may come in any order and in parts that
 * several ranks hold, and one changed element always changes it. It finds damage and mistakes, but
 * not deliberate forgery. Files contain fingerprints, so it must never change.
 */
#ifndef SOFTBACK_NN_FINGERPRINT_H
#define SOFTBACK_NN_FINGERPRINT_H

#include "nn/flat.h"
#include "tensor/communicator.h"

/* The key of the terms of a tensor's elements, and its own term. `dtype` is the name that files
   have for it, "F32". */
struct fingerprint_tensor {
    uint64_t key, term;
};
struct fingerprint_tensor fingerprint_tensor(const char *name, const char *dtype, int rank,
                                             const int64_t *dim);

/* The terms of `count` elements in host memory, from the tensor's element number `first` on. */
uint64_t fingerprint_elements(uint64_t key, sb_dtype dtype, int64_t first, int64_t count,
                              const void *elements);

/* Of a tensor with the unsharded shape of parameter i. */
struct fingerprint_tensor fingerprint_parameter(const sb_parameters *set, int64_t i,
                                                const char *name);
/* Adds the terms of the elements that this rank has of it, which are all of `own`. */
bool fingerprint_part(const sb_parameters *set, int64_t i, uint64_t key, const sb_tensor *own,
                      uint64_t *sum);

/* sb_parameters_fingerprint of the distributed parameters alone, or of the others. */
uint64_t parameters_fingerprint(const sb_parameters *set, bool cut);

/* Adds up the fingerprints of ranks (NULL: this one alone), for all of them. */
bool fingerprint_sum(sb_communicator *ranks, uint64_t *fingerprint);

/* As files hold it: 16 hexadecimal digits. False where a text is something else. */
struct fingerprint_text {
    char text[17];
};
struct fingerprint_text fingerprint_text(uint64_t fingerprint);
bool fingerprint_parse(const char *text, uint64_t *fingerprint);

#endif
