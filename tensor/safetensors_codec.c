#include "tensor/safetensors_parts.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Little-endian words, byte by byte, so that the byte order of the host does not matter; compilers
   turn them into plain loads and stores. */
static inline uint16_t word16(const unsigned char *from)
{
    return (uint16_t)(from[0] | from[1] << 8);
}

static inline uint32_t word32(const unsigned char *from)
{
    return (uint32_t)word16(from) | (uint32_t)word16(from + 2) << 16;
}

static inline uint64_t word64(const unsigned char *from)
{
    return (uint64_t)word32(from) | (uint64_t)word32(from + 4) << 32;
}

/* IEEE 754 binary16: 1 bit of sign, 5 of exponent with bias 15, 10 of fraction. */
static uint32_t widen_half(uint16_t half)
{
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
    if (exponent == 0x1F)
        return sign | 0x7F800000u | fraction << 13;
    if (exponent > 0)
        return sign | (exponent + 112) << 23 | fraction << 13;
    float value = (float)fraction * 0x1p-24f; /* zero or subnormal: exact */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return sign | bits;
}

/* Reads elements of `bytes` bytes: x is the word of one, which becomes `value`, of type `real`, if
   it `fits`. */
#define READER(name, bytes, word, x_type, real, fits, value)                                       \
    static int64_t name(int64_t n, const unsigned char *from, void *to)                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const x_type x = (x_type)word(from + bytes * i);                                       \
            if (!(fits))                                                                           \
                return i;                                                                          \
            ((real *)to)[i] = (real)(value);                                                       \
        }                                                                                          \
        return -1;                                                                                 \
    }

READER(read_word32, 4, word32, uint32_t, uint32_t, true, x)
READER(read_word64, 8, word64, uint64_t, uint64_t, true, x)
READER(read_bf16, 2, word16, uint16_t, uint32_t, true, (uint32_t)x << 16) /* a float's upper half */
READER(read_f16, 2, word16, uint16_t, uint32_t, true, widen_half(x))
READER(read_bool, 1, *, uint8_t, uint8_t, x <= 1, x)
READER(read_i8, 1, *, int8_t, int32_t, true, x)
READER(read_u8, 1, *, uint8_t, int32_t, true, x)
READER(read_i16, 2, word16, int16_t, int32_t, true, x)
READER(read_u16, 2, word16, uint16_t, int32_t, true, x)
READER(read_u32, 4, word32, uint32_t, int32_t, x <= INT32_MAX, x)
READER(read_i64, 8, word64, int64_t, int32_t, x >= INT32_MIN && x <= INT32_MAX, x)
READER(read_u64, 8, word64, uint64_t, int32_t, x <= INT32_MAX, x)

static const struct codec codecs[] = {
    {"F32", 4, SB_F32, read_word32},  {"F64", 8, SB_F64, read_word64},
    {"I32", 4, SB_I32, read_word32},  {"BOOL", 1, SB_BOOL, read_bool},
    {"F16", 2, SB_F32, read_f16},     {"BF16", 2, SB_F32, read_bf16},
    {"I64", 8, SB_I32, read_i64},     {"U64", 8, SB_I32, read_u64},
    {"U32", 4, SB_I32, read_u32},     {"I16", 2, SB_I32, read_i16},
    {"U16", 2, SB_I32, read_u16},     {"I8", 1, SB_I32, read_i8},
    {"U8", 1, SB_I32, read_u8},       {"F8_E4M3", 1, SB_F32, NULL},
    {"F8_E5M2", 1, SB_F32, NULL},     {"F8_E8M0", 1, SB_F32, NULL},
    {"F8_E4M3FNUZ", 1, SB_F32, NULL}, {"F8_E5M2FNUZ", 1, SB_F32, NULL},
    {"C64", 8, SB_F32, NULL},
};

const struct codec *codec_find(const char *name)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (strcmp(codecs[i].name, name) == 0)
            return &codecs[i];
    return NULL;
}

const struct codec *codec_of(sb_dtype dtype)
{
    static const char *const names[SB_DTYPES] = {[SB_F32] = "F32",
                                                 [SB_F64] = "F64",
                                                 [SB_BF16] = "BF16",
                                                 [SB_I32] = "I32",
                                                 [SB_BOOL] = "BOOL"};
    return codec_find(names[dtype]);
}

struct codec_text codec_show(const struct codec *codec, const unsigned char *from)
{
    struct codec_text shown;
    uint64_t value = codec->bytes == 8 ? word64(from) : codec->bytes == 4 ? word32(from) : from[0];
    bool is_signed = codec->name[0] == 'I';
    if (is_signed)
        snprintf(shown.text, sizeof shown.text, "%lld", (long long)value);
    else
        snprintf(shown.text, sizeof shown.text, "%llu", (unsigned long long)value);
    return shown;
}

/* Inline, so that `bytes` is a constant and the inner loop one store. */
static inline void write_words(size_t bytes, int64_t n, const unsigned char *from,
                               unsigned char *to)
{
    for (int64_t i = 0; i < n; i++, from += bytes, to += bytes) {
        uint16_t word2;
        uint32_t word4;
        uint64_t word8;
        memcpy(bytes == 2 ? (void *)&word2 : bytes == 4 ? (void *)&word4 : &word8, from, bytes);
        uint64_t word = bytes == 2 ? word2 : bytes == 4 ? word4 : word8;
        for (size_t b = 0; b < bytes; b++)
            to[b] = (unsigned char)(word >> 8 * b);
    }
}

void codec_write(sb_dtype dtype, int64_t n, const void *from, unsigned char *to)
{
    switch (sb_dtype_bytes(dtype)) {
    case 8:
        write_words(8, n, from, to);
        break;
    case 4:
        write_words(4, n, from, to);
        break;
    case 2:
        write_words(2, n, from, to);
        break;
    default: /* a bool: any nonzero byte becomes 1 */
        for (int64_t i = 0; i < n; i++)
            to[i] = ((const unsigned char *)from)[i] != 0;
    }
}
