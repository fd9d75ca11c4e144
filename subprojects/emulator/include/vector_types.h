/*
 * CUDA's vector types. A pair or a quadruple is aligned to its own size (at most 16 bytes), so that
 * one instruction loads it; a triple is not.
 */
#ifndef SOFTBACK_EMULATOR_VECTOR_TYPES_H
#define SOFTBACK_EMULATOR_VECTOR_TYPES_H

#define EMULATOR_VECTOR_2(name, type)                                                              \
    struct alignas(2 * sizeof(type)) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }
#define EMULATOR_VECTOR_3(name, type)                                                              \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }
#define EMULATOR_VECTOR_4(name, type)                                                              \
    struct alignas(4 * sizeof(type)) name##4                                                       \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
#define EMULATOR_VECTORS(name, type)                                                               \
    EMULATOR_VECTOR_2(name, type) EMULATOR_VECTOR_3(name, type) EMULATOR_VECTOR_4(name, type)

EMULATOR_VECTORS(char, signed char)
EMULATOR_VECTORS(uchar, unsigned char)
EMULATOR_VECTORS(short, short)
EMULATOR_VECTORS(ushort, unsigned short)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(uint, unsigned)
EMULATOR_VECTORS(float, float)
EMULATOR_VECTOR_2(double, double)
EMULATOR_VECTOR_3(double, double)
EMULATOR_VECTOR_2(longlong, long long)
EMULATOR_VECTOR_2(ulonglong, unsigned long long)

#undef EMULATOR_VECTORS
#undef EMULATOR_VECTOR_4
#undef EMULATOR_VECTOR_3
#undef EMULATOR_VECTOR_2

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width), y(height), z(depth)
    {
    }
};

#endif
