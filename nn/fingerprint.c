#include "nn/fingerprint.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bijection that spreads each bit over the word (Steele, Lea and Flood 2014, SplitMix64). */
static inline uint64_t fingerprint_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */

struct fingerprint_tensor fingerprint_tensor(const char *name, const char *dtype, int rank,
                                             const int64_t *dim)
{
    uint64_t key = 0;
    for (const char *text = name; *text; text++)
        key = fingerprint_mix(key + golden) ^ (unsigned char)*text;
    for (const char *text = dtype; *text; text++)
        key = fingerprint_mix(key + 2 * golden) ^ (unsigned char)*text;
    for (int axis = 0; axis < rank; axis++)
        key = fingerprint_mix(key + 3 * golden) ^ (uint64_t)dim[axis];
    key = fingerprint_mix(key + golden);
    return (struct fingerprint_tensor){key, fingerprint_mix(key)};
}

/* The bits of element i. The widths of dtypes are 1, 2, 4 and 8 bytes. */
static inline uint64_t fingerprint_bits_at(const void *elements, size_t width, int64_t i)
{
    const char *at = (const char *)elements + (size_t)i * width;
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    switch (width) {
    case sizeof wide:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case sizeof word:
        memcpy(&word, at, sizeof word);
        return word;
    case sizeof half:
        memcpy(&half, at, sizeof half);
        return half;
    default:
        return *(const unsigned char *)at;
    }
}

uint64_t fingerprint_elements(uint64_t key, sb_dtype dtype, int64_t first, int64_t count,
                              const void *elements)
{
    const size_t width = sb_dtype_bytes(dtype);
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += fingerprint_mix((key + (uint64_t)(first + i) * golden) ^
                               fingerprint_bits_at(elements, width, i));
    return sum;
}

/* ---- parameters ---- */

struct fingerprint_tensor fingerprint_parameter(const sb_parameters *set, int64_t i,
                                                const char *name)
{
    int64_t dim[SB_MAX_RANK];
    const int rank = parameters_whole(set, i, dim);
    char dtype[8] = ""; /* files write f32 as F32 */
    const char *own = sb_dtype_name(sb_parameters_dtype(set));
    for (size_t k = 0; own[k] && k + 1 < sizeof dtype; k++)
        dtype[k] = (char)toupper((unsigned char)own[k]);
    return fingerprint_tensor(name, dtype, rank, dim);
}

bool fingerprint_part(const sb_parameters *set, int64_t i, uint64_t key, const sb_tensor *own,
                      uint64_t *sum)
{
    enum { CHUNK = 2048 };
    uint64_t buffer[CHUNK];
    const struct part part = parameters_part(set, i);
    for (int64_t at = 0, n; at < part.rows * part.here; at += n) {
        const int64_t row = at / part.here, column = at % part.here;
        n = part.here - column < CHUNK ? part.here - column : CHUNK;
        if (!own->device->download(buffer, tensor_element(own, at),
                                   (size_t)n * sb_dtype_bytes(own->dtype)))
            return false;
        *sum +=
            fingerprint_elements(key, own->dtype, row * part.of + part.first + column, n, buffer);
    }
    return true;
}

/* The fingerprint of the undistributed parameters, of the distributed ones, or of both; 0: a
   failure. */
static uint64_t fingerprint_own(const sb_parameters *set, bool whole, bool cut)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < sb_parameters_count(set); i++) {
        if (!(parameters_is_cut(set, i) ? cut : whole))
            continue;
        const struct fingerprint_tensor t =
            fingerprint_parameter(set, i, sb_parameters_name(set, i));
        sum += t.term;
        if (!fingerprint_part(set, i, t.key, sb_parameters_get(set, i), &sum))
            return 0;
    }
    return sum;
}

uint64_t sb_parameters_fingerprint(const sb_parameters *set)
{
    return fingerprint_own(set, true, true);
}

uint64_t parameters_fingerprint(const sb_parameters *set, bool cut)
{
    return fingerprint_own(set, !cut, cut);
}

/* ---- ranks ---- */

bool fingerprint_sum(sb_communicator *ranks, uint64_t *fingerprint)
{
    enum { PIECES = 4, BITS = 16 }; /* so small that their sums are exact in f64 */
    double piece[PIECES];
    if (!ranks)
        return true;
    for (int i = 0; i < PIECES; i++)
        piece[i] = (double)(*fingerprint >> BITS * i & 0xffff);
    if (!sb_communicator_sum(ranks, SB_F64, PIECES, piece))
        return false;
    *fingerprint = 0;
    for (int i = 0; i < PIECES; i++)
        *fingerprint += (uint64_t)piece[i] << BITS * i;
    return true;
}

/* ---- text ---- */

struct fingerprint_text fingerprint_text(uint64_t fingerprint)
{
    struct fingerprint_text text;
    snprintf(text.text, sizeof text.text, "%016llx", (unsigned long long)fingerprint);
    return text;
}

bool fingerprint_parse(const char *text, uint64_t *fingerprint)
{
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *fingerprint = strtoull(text, NULL, 16);
    return true;
}
