#include "models/training/fingerprint.h"
#include "tensor/safetensors_elements.h"
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

/* ---- files ---- */

struct summing {
    uint64_t key, sum;
};

static bool fingerprint_add(void *summing_, sb_dtype dtype, int64_t first, int64_t count,
                            const void *elements)
{
    struct summing *s = summing_;
    s->sum += fingerprint_elements(s->key, dtype, first, count, elements);
    return true;
}

bool fingerprint_file(const sb_safetensors *file, uint64_t *fingerprint)
{
    struct summing s = {0, 0};
    for (int i = 0; i < sb_safetensors_count(file); i++) {
        const struct fingerprint_tensor t =
            fingerprint_tensor(sb_safetensors_name(file, i), sb_safetensors_dtype(file, i),
                               sb_safetensors_rank(file, i), sb_safetensors_shape(file, i));
        s.key = t.key;
        s.sum += t.term;
        if (!elements_pass(file, i, fingerprint_add, &s))
            return false;
    }
    *fingerprint = s.sum;
    return true;
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
