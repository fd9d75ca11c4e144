#include "cuda/gemm.cuh"
#include "cuda/pack.cuh"
#include "ops/matmul.h"
#include <type_traits>

namespace
{

/* Whether axes i and i + 1 are contiguous in all three operands, so that they can be merged; c must
   have both or neither. */
bool is_one_axis(const matmul_shape &s, int i)
{
    const int64_t n = s.dim[i + 1];
    return (i + 1 < s.kept || i >= s.kept) && s.a[i] == n * s.a[i + 1] &&
           s.b[i] == n * s.b[i + 1] && s.c[i] == n * s.c[i + 1];
}

void remove_axis(matmul_shape &s, int at)
{
    s.kept -= at < s.kept;
    s.axes--;
    for (int i = at; i < s.axes; i++) {
        s.dim[i] = s.dim[i + 1];
        s.a[i] = s.a[i + 1];
        s.b[i] = s.b[i + 1];
        s.c[i] = s.c[i + 1];
    }
}

void join_axes(matmul_shape &s)
{
    for (int i = s.axes - 2; i >= 0; i--)
        if (is_one_axis(s, i)) {
            s.dim[i + 1] *= s.dim[i];
            remove_axis(s, i);
        }
}

/* Removes the longest of the kept axes, which becomes the batch of one call. */
gemm_batch take_batch(matmul_shape &s)
{
    int longest = 0;
    if (s.kept == 0)
        return gemm_single;
    for (int i = 1; i < s.kept; i++)
        longest = s.dim[i] > s.dim[longest] ? i : longest;
    gemm_batch batch = {s.dim[longest], s.a[longest], s.b[longest], s.c[longest]};
    remove_axis(s, longest);
    return batch;
}

int64_t places(const matmul_shape &s)
{
    int64_t n = 1;
    for (int i = 0; i < s.axes; i++)
        n *= s.dim[i];
    return n;
}

/* The offset of index tuple number `place`. */
int64_t offset(const matmul_shape &s, const int64_t *stride, int64_t place)
{
    int64_t elements = 0;
    for (int i = s.axes - 1; i >= 0; i--) {
        elements += place % s.dim[i] * stride[i];
        place /= s.dim[i];
    }
    return elements;
}

/* The number of products that are summed into each c. */
int64_t terms(const matmul_shape &s)
{
    int64_t n = 1;
    for (int i = s.kept; i < s.axes; i++)
        n *= s.dim[i];
    return n;
}

/* The axes that c does not have are the inner ones, so the products of a sum are consecutive. */
template <class T, class C>
bool multiply(matmul_shape s, const T *a, const T *b, bool by_row, bool fresh, C *c)
{
    const int64_t summed = terms(s);
    const gemm_batch batch = take_batch(s);
    const gemm_shape size = {s.transpose_a,
                             s.transpose_b,
                             s.m,
                             s.n,
                             s.k,
                             s.transpose_a ? s.m : s.k,
                             s.transpose_b ? s.k : s.n,
                             s.n,
                             s.tf32};
    bool ok = true;
    for (int64_t place = 0; ok && place < places(s); place++)
        ok = (by_row ? gemm_by_row<T, C>
                     : gemm<T, C>)("matmul", size, batch, a + offset(s, s.a, place),
                                   b + offset(s, s.b, place), fresh && place % summed == 0 ? 0 : 1,
                                   c + offset(s, s.c, place));
    return ok;
}

template <class T>
__global__ void add_rounded(bool fresh, int64_t n, RESTRICTED(const real_of<T>) sum_,
                            RESTRICTED(T) c_)
{
    typedef real_pack<T> reals;
    GRID_STRIDE(i, pack_count(n, PACK<T>))
    {
        const int64_t at = i * PACK<T>, left = n - at;
        reals sum = reals::load(sum_ + at, left);
        const reals c = fresh ? reals::all(0) : reals::load(c_ + at, left);
        for (int e = 0; e < PACK<T>; e++)
            sum.of[e] += c.of[e];
        sum.store(c_ + at, left);
    }
}

/* If T is narrower than the type of sums: c is rounded once, after all of its products. */
template <class T>
bool sum_apart(const matmul_shape &s, const T *a, const T *b, bool by_row, bool fresh, T *c)
{
    const int64_t n = s.m * s.n * places(s) / terms(s);
    const scratch room("matmul", (size_t)n * sizeof(real_of<T>));
    real_of<T> *const sum = room.as<real_of<T>>();
    if (!room || !multiply(s, a, b, by_row, true, sum))
        return false;
    LAUNCH_EACH(pack_count(n, PACK<T>), (add_rounded<T>), fresh, n, sum, c);
    return launched("matmul");
}

template <class T>
bool product(const struct matmul_shape *shape, const void *a, const void *b, bool by_row,
             bool fresh, void *c)
{
    const bool rounds = !std::is_same<T, real_of<T>>::value;
    matmul_shape s = *shape;
    join_axes(s);
    return rounds && terms(s) > 1 ? sum_apart(s, (const T *)a, (const T *)b, by_row, fresh, (T *)c)
                                  : multiply(s, (const T *)a, (const T *)b, by_row, fresh, (T *)c);
}

} // namespace

KERNELS_AND_BF16(matmul, product<T>);
