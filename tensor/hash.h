/* FNV-1a (Fowler, Noll and Vo 1991), a 64-bit hash of bytes. Files contain hashes, so it must never
   change. */
#ifndef SOFTBACK_TENSOR_HASH_H
#define SOFTBACK_TENSOR_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* The hash of what `hash` is of, and these bytes after it. */
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *at = bytes; size > 0; size--, at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
