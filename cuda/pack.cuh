/*
 * Packs: adjacent elements that a thread loads and stores together, 16 bytes if they are aligned;
 * the end of an array, and unaligned arrays, are processed element by element.
 */
#ifndef SOFTBACK_CUDA_PACK_CUH
#define SOFTBACK_CUDA_PACK_CUH

#include "cuda/device.cuh"

/* The number of elements in a pack of T; packs of other types with it have the same number. */
template <class T> constexpr int PACK = 16 / sizeof(T);

template <class T, int N = PACK<T>> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) pack {
    T of[N];

    /* The elements x[0] .. x[N - 1], or only `left` of them, converted from the stored type. */
    template <class Stored> static __device__ pack load(const Stored *x, int64_t left)
    {
        const auto stored = pack<Stored, N>::load(x, left);
        pack p;
        for (int e = 0; e < N; e++)
            p.of[e] = (T)stored.of[e];
        return p;
    }
    template <class Stored> __device__ void store(Stored *x, int64_t left) const
    {
        pack<Stored, N> stored;
        for (int e = 0; e < N; e++)
            stored.of[e] = (Stored)of[e];
        stored.store(x, left);
    }
    static __device__ pack load(const T *x, int64_t left)
    {
        if (left >= N && (uintptr_t)x % alignof(pack) == 0)
            return *reinterpret_cast<const pack *>(x);
        pack p;
        for (int e = 0; e < N; e++)
            p.of[e] = e < left ? x[e] : T();
        return p;
    }
    __device__ void store(T *x, int64_t left) const
    {
        if (left >= N && (uintptr_t)x % alignof(pack) == 0)
            *reinterpret_cast<pack *>(x) = *this;
        else
            for (int e = 0; e < N; e++)
                if (e < left)
                    x[e] = of[e];
    }
    /* x += the pack, or x = the pack if x is fresh. */
    template <class Stored> __device__ void add_to(Stored *x, bool fresh, int64_t left) const
    {
        pack sum = *this;
        if (!fresh) {
            const pack old = load(x, left);
            for (int e = 0; e < N; e++)
                sum.of[e] = old.of[e] + of[e];
        }
        sum.store(x, left);
    }
    static __device__ pack all(T x)
    {
        pack p;
        for (int e = 0; e < N; e++)
            p.of[e] = x;
        return p;
    }
};

/* The elements of a pack, in the type for arithmetic. */
template <class T> using real_pack = pack<real_of<T>, PACK<T>>;

inline __host__ __device__ int64_t pack_count(int64_t n, int size)
{
    return (n + size - 1) / size;
}

#endif
