/* The fingerprint of a set of parameters. */
#include "nn/flat.h"
#include "tensor/hash.h"

/* Updates a hash with the values of a tensor. */
static bool hash_values(const sb_tensor *t, uint64_t *hash)
{
    enum { CHUNK = 4096 };
    unsigned char byte[CHUNK];
    for (size_t at = 0, n, all = tensor_bytes(t); at < all; at += n) {
        n = all - at < CHUNK ? all - at : CHUNK;
        if (!t->device->download(byte, (const char *)t->data + at, n))
            return false;
        *hash = hash_add(*hash, byte, n);
    }
    return true;
}

/* The fingerprint of the undistributed parameters, of the distributed ones, or of both. */
static uint64_t fingerprint(const sb_parameters *set, bool whole, bool cut)
{
    uint64_t hash = HASH_START;
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        if ((parameters_is_cut(set, i) ? cut : whole) &&
            !hash_values(sb_parameters_get(set, i), &hash))
            return 0;
    return hash;
}

uint64_t sb_parameters_fingerprint(const sb_parameters *set)
{
    return fingerprint(set, true, true);
}

uint64_t parameters_fingerprint(const sb_parameters *set, bool cut)
{
    return fingerprint(set, !cut, cut);
}
