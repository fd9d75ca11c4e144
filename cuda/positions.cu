#include "cuda/column_group.cuh"
#include "cuda/divisor.cuh"
#include "cuda/pack.cuh"
#include "ops/positions.h"

namespace
{

/* A rotation of rows (B L) of H heads with two halves, each of `half` elements in `packs` packs. */
struct turns {
    int64_t rows, half;
    divisor L, H, packs;
};

/* (x_i, x_{i+D/2}) becomes (x_i cos - x_{i+D/2} sin, x_i sin + x_{i+D/2} cos), where the sine is
   that of the angle times the sign. */
template <class T>
__global__ void turn_packs(turns t, RESTRICTED(const real_of<T>) cosine,
                           RESTRICTED(const real_of<T>) sine, real_of<T> sign, bool add, const T *x,
                           T *y)
{
    typedef real_pack<T> reals;
    GRID_STRIDE(n, t.rows * t.H.d * t.packs.d)
    {
        const int64_t head = t.packs.quotient(n), row = t.H.quotient(head);
        const int64_t i = (n - head * t.packs.d) * PACK<T>, left = t.half - i;
        const int64_t angle = (row - t.L.quotient(row) * t.L.d) * t.half + i;
        const int64_t low = head * 2 * t.half + i, high = low + t.half;
        const reals c = reals::load(cosine + angle, left);
        const reals s = reals::load(sine + angle, left);
        const reals x0 = reals::load(x + low, left), x1 = reals::load(x + high, left);
        reals a = add ? reals::load(y + low, left) : reals::all(0);
        reals b = add ? reals::load(y + high, left) : reals::all(0);
        for (int e = 0; e < PACK<T>; e++) {
            const real_of<T> sin = sign * s.of[e];
            a.of[e] = before(!add, a.of[e]) + (x0.of[e] * c.of[e] - x1.of[e] * sin);
            b.of[e] = before(!add, b.of[e]) + (x0.of[e] * sin + x1.of[e] * c.of[e]);
        }
        a.store(y + low, left);
        b.store(y + high, left);
    }
}

template <class T>
bool turn(int64_t B, int64_t L, int64_t H, int64_t D, const void *table, bool backwards, bool add,
          const void *x, void *y)
{
    const int64_t half = D / 2, packs = pack_count(half, PACK<T>), count = B * L * H * packs;
    const real_of<T> *const cosine = (const real_of<T> *)table;
    LAUNCH_EACH(count, (turn_packs<T>), turns{B * L, half, divisor(L), divisor(H), divisor(packs)},
                cosine, cosine + L * half, (real_of<T>)(backwards ? -1 : 1), add, (const T *)x,
                (T *)y);
    return launched("rotary");
}

/* Biases by distance: H heads, distances clipped to R. */
struct distances {
    int64_t H, R, Lq, Lk;

    /* The index in the table for the distance of key j from query i. */
    __device__ int64_t place(int64_t i, int64_t j) const
    {
        const int64_t distance = j - (i + Lk - Lq);
        return (distance < -R ? -R : distance > R ? R : distance) + R;
    }
};

template <class T>
__global__ void spread(distances d, divisor Lq, divisor Lk, RESTRICTED(const T) table,
                       RESTRICTED(T) y)
{
    GRID_STRIDE(n, d.H * d.Lq * d.Lk)
    {
        const int64_t row = Lk.quotient(n), j = n - row * d.Lk;
        const int64_t h = Lq.quotient(row), i = row - h * d.Lq;
        y[n] = table[h * (2 * d.R + 1) + d.place(i, j)];
    }
}

template <class T>
bool relative_forward(int64_t H, int64_t R, int64_t Lq, int64_t Lk, const void *table, void *y)
{
    LAUNCH_EACH(H * Lq * Lk, (spread<T>), distances{H, R, Lq, Lk}, divisor(Lq), divisor(Lk),
                (const T *)table, (T *)y);
    return launched("relative_bias");
}

/*
 * y_ij = table[clip(j - (i + Lk - Lq), -R, R) + R]. The two ends sum many numbers, in double: first
 * over each row, beyond distance R to the left and to the right, and then, like the other
 * distances, over all rows of a head.
 */
template <class T, int GROUP>
__global__ void sum_row_ends(int64_t rows, int64_t Lk, distances d, RESTRICTED(const T) dy,
                             RESTRICTED(double) low, RESTRICTED(double) high)
{
    const row_group<GROUP> group;
    if (group.row >= rows)
        return;
    const int64_t at = group.row % d.Lq + Lk - d.Lq; /* the key at distance 0 */
    double left = 0, right = 0;
    for (int64_t j = group.lane; j < Lk; j += GROUP) {
        const double term = (double)dy[group.row * Lk + j];
        left += j < at - d.R ? term : 0;
        right += j > at + d.R ? term : 0;
    }
    left = group.sum(left);
    right = group.sum(right);
    if (group.lane == 0) {
        low[group.row] = left;
        high[group.row] = right;
    }
}

/* Column h (2 R + 1) + r of the grid sums element r of head h of dtable. */
template <class T, class Group>
__global__ void sum_distances(distances d, RESTRICTED(const T) dy, RESTRICTED(const double) low,
                              RESTRICTED(const double) high, RESTRICTED(T) dtable)
{
    const Group group;
    const int64_t width = 2 * d.R + 1;
    const bool used = group.row < d.H * width;
    const int64_t h = used ? group.row / width : 0, r = used ? group.row % width : 0;
    double sum = 0;
    for (int64_t i = group.lane; used && i < d.Lq; i += Group::LANES) {
        const int64_t row = h * d.Lq + i, j = r - d.R + i + d.Lk - d.Lq;
        sum += 0 <= j && j < d.Lk ? (double)dy[row * d.Lk + j] : 0;
        sum += r == 0 ? low[row] : 0;
        sum += r == 2 * d.R ? high[row] : 0;
    }
    sum = group.sum(sum);
    if (used && group.lane == 0)
        dtable[group.row] = before(false, dtable[group.row]) + (real_of<T>)sum;
}

template <class T>
bool relative_backward(int64_t H, int64_t R, int64_t Lq, int64_t Lk, const void *dy, void *dtable)
{
    const distances d = {H, R, Lq, Lk};
    const int64_t rows = H * Lq, sums = H * (2 * R + 1);
    if (rows * Lk == 0)
        return true;
    const scratch ends("relative_bias", 2 * (size_t)rows * sizeof(double));
    if (!ends)
        return false;
    double *const low = ends.as<double>(), *const high = low + rows;
    LAUNCH_ROWS(sum_row_ends, T, rows, Lk, d, (const T *)dy, low, high);
    LAUNCH_GROUPS(sum_distances, T, sums, Lq, false, d, (const T *)dy, low, high, (T *)dtable);
    return launched("relative_bias");
}

} // namespace

KERNELS_AND_BF16(positions, turn<T>, relative_forward<T>, relative_backward<T>);
