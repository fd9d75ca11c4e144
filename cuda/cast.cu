#include "cuda/pack.cuh"
#include "ops/cast.h"

namespace
{

/* x as T, or y + x if not fresh. */
template <class T, class From> __device__ T cast_of(bool fresh, T y, From x)
{
    return (T)(fresh ? (real_of<T>)x : (real_of<T>)y + (real_of<T>)x);
}

/* To bf16 from what float would round too: see sb_bf16_round_double. */
__device__ inline bf16 cast_wide(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits -= value > 0 ? narrow > value : narrow < value;
    bits |= narrow != value;
    memcpy(&narrow, &bits, sizeof narrow);
    return (bf16)narrow;
}

__device__ inline bf16 cast_of(bool fresh, bf16 y, double x)
{
    return cast_wide(fresh ? x : (double)(float)y + x);
}

__device__ inline bf16 cast_of(bool fresh, bf16 y, int32_t x)
{
    return cast_wide(fresh ? (double)x : (double)(float)y + x);
}

template <class From, class T>
__global__ void real_packs(bool fresh, int64_t n, const From *x, T *y)
{
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        const auto part = pack<From, PACK<T>>::load(x + at, left);
        pack<T> sum = fresh ? pack<T>::all((T)0.0f) : pack<T>::load(y + at, left);
        for (int e = 0; e < PACK<T>; e++)
            sum.of[e] = cast_of(fresh, sum.of[e], part.of[e]);
        sum.store(y + at, left);
    }
}

template <class From, class T> void launch_to_real(bool fresh, int64_t n, const void *x, void *y)
{
    LAUNCH_EACH(pack_count(n, PACK<T>), (real_packs<From, T>), fresh, n, (const From *)x, (T *)y);
}

template <class T> bool to_real(sb_dtype from, bool fresh, int64_t n, const void *x, void *y)
{
    if (n == 0)
        return true;
    switch (from) {
    case SB_F32:
        launch_to_real<float, T>(fresh, n, x, y);
        break;
    case SB_F64:
        launch_to_real<double, T>(fresh, n, x, y);
        break;
    case SB_BF16:
        launch_to_real<bf16, T>(fresh, n, x, y);
        break;
    case SB_I32:
        launch_to_real<int32_t, T>(fresh, n, x, y);
        break;
    case SB_BOOL:
        launch_to_real<uint8_t, T>(fresh, n, x, y);
        break;
    case SB_DUAL: /* exists on the CPU alone */
        break;
    }
    return launched("cast");
}

/* Truncates towards zero; numbers out of range become the nearest i32, NaN becomes 0. */
template <class T> __device__ void convert(T x, int32_t *y)
{
    const T limit = (T)2147483648.0;
    if (x != x)
        *y = 0;
    else
        *y = x >= limit ? INT32_MAX : x <= -limit ? INT32_MIN : (int32_t)x;
}

__device__ inline void convert(uint8_t x, int32_t *y)
{
    *y = x;
}

template <class From> __device__ void convert(From x, uint8_t *y)
{
    *y = x != 0;
}

template <class From, class To> __global__ void whole_packs(int64_t n, const From *x, To *y)
{
    GRID_STRIDE(i, pack_count(n, PACK<From>))
    {
        const int64_t at = i * PACK<From>, left = n - at;
        const pack<From> part = pack<From>::load(x + at, left);
        pack<To, PACK<From>> whole;
        for (int e = 0; e < PACK<From>; e++)
            convert(part.of[e], &whole.of[e]);
        whole.store(y + at, left);
    }
}

template <class From, class To> void launch_to_whole(int64_t n, const void *x, void *y)
{
    LAUNCH_EACH(pack_count(n, PACK<From>), (whole_packs<From, To>), n, (const From *)x, (To *)y);
}

template <class T> bool to_whole(sb_dtype from, sb_dtype to, int64_t n, const void *x, void *y)
{
    if (n == 0)
        return true;
    if (to == SB_I32 && from == SB_BOOL)
        launch_to_whole<uint8_t, int32_t>(n, x, y);
    else if (to == SB_I32)
        launch_to_whole<T, int32_t>(n, x, y);
    else if (from == SB_I32)
        launch_to_whole<int32_t, uint8_t>(n, x, y);
    else
        launch_to_whole<T, uint8_t>(n, x, y);
    return launched("cast");
}

/* The blocks of item i are first[i] .. first[i + 1] - 1. */
struct cast_blocks {
    cast_list list;
    int64_t first[CAST_LIST + 1];
};

__device__ inline int item_of_block(const cast_blocks &c, int64_t block)
{
    int item = 0;
    for (int step = CAST_LIST / 2; step > 0; step /= 2)
        if (item + step < c.list.count && c.first[item + step] <= block)
            item += step;
    return item;
}

/* A pack a thread. */
__global__ void list_packs(const cast_blocks c)
{
    constexpr int N = PACK<bf16>;
    const int i = item_of_block(c, blockIdx.x);
    const cast_item &item = c.list.item[i];
    const int64_t at = ((blockIdx.x - c.first[i]) * THREADS + threadIdx.x) * N;
    if (at >= item.n)
        return;
    const auto part = pack<float, N>::load((const float *)item.x + at, item.n - at);
    part.store((bf16 *)item.y + at, item.n - at);
}

bool cast_each(const cast_list *list)
{
    cast_blocks c = {*list, {}};
    for (int i = 0; i < list->count; i++)
        c.first[i + 1] =
            c.first[i] + (pack_count(list->item[i].n, PACK<bf16>) + THREADS - 1) / THREADS;
    LAUNCH(list_packs, dim3((unsigned)c.first[list->count]), dim3(THREADS), 0, stream, c);
    return launched("cast");
}

} // namespace

KERNELS(cast, to_real<T>, to_real<bf16>, to_whole<T>, cast_each);
