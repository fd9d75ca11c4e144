#include "ops/positions.h"
#include "ops/cpu/real.h"

/* (x_i, x_{i+D/2}) becomes (x_i cos - x_{i+D/2} sin, x_i sin + x_{i+D/2} cos), where the sine is
   that of the angle times the sign. */
static void positions_turn_head(int64_t half, const real *cosine, const real *sine, real sign,
                                bool add, const real *x, real *y)
{
    for (int64_t i = 0; i < half; i++) {
        real c = cosine[i], s = sign * sine[i];
        real a = x[i] * c - x[i + half] * s, b = x[i] * s + x[i + half] * c;
        y[i] = add ? y[i] + a : a;
        y[i + half] = add ? y[i + half] + b : b;
    }
}

static bool positions_turn(int64_t B, int64_t L, int64_t H, int64_t D, const void *table,
                           bool backwards, bool add, const void *x_, void *y_)
{
    const real *cosine = table, *sine = cosine + L * (D / 2), *x = x_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (B * L * H * D > PARALLEL_WORK)
    for (int64_t row = 0; row < B * L; row++) {
        int64_t at = row % L * (D / 2);
        for (int64_t h = row * H; h < (row + 1) * H; h++)
            positions_turn_head(D / 2, cosine + at, sine + at, backwards ? -1 : 1, add, x + h * D,
                                y + h * D);
    }
    return true;
}

/* The keys at distance at most R from query i: the first, and the one after the last. */
struct near {
    int64_t from, to;
};

static int64_t positions_clip(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static struct near positions_near(int64_t i, int64_t R, int64_t Lq, int64_t Lk)
{
    int64_t at = i + Lk - Lq; /* the key at distance 0 */
    int64_t from = positions_clip(at - R, 0, Lk);
    return (struct near){from, positions_clip(at + R + 1, from, Lk)};
}

static bool positions_relative_forward(int64_t H, int64_t R, int64_t Lq, int64_t Lk,
                                       const void *table_, void *y_)
{
    const real *table = table_;
    real *y = y_;
#pragma omp parallel for schedule(static) if (H * Lq * Lk > PARALLEL_WORK)
    for (int64_t row = 0; row < H * Lq; row++) {
        int64_t i = row % Lq;
        struct near keys = positions_near(i, R, Lq, Lk);
        const real *bias = table + row / Lq * (2 * R + 1);
        real *out = y + row * Lk;
        for (int64_t j = 0; j < keys.from; j++)
            out[j] = bias[0];
        for (int64_t j = keys.from; j < keys.to; j++)
            out[j] = bias[j - (i + Lk - Lq) + R];
        for (int64_t j = keys.to; j < Lk; j++)
            out[j] = bias[2 * R];
    }
    return true;
}

/* y_ij = table[clip(j - (i + Lk - Lq), -R, R) + R]. The two ends sum many numbers, so they use
   double. */
static void positions_relative_backward_head(int64_t R, int64_t Lq, int64_t Lk, const real *dy,
                                             real *dtable)
{
    double low = 0, high = 0;
    for (int64_t i = 0; i < Lq; i++, dy += Lk) {
        struct near keys = positions_near(i, R, Lq, Lk);
        for (int64_t j = 0; j < keys.from; j++)
            low += (double)dy[j];
        for (int64_t j = keys.from; j < keys.to; j++)
            dtable[j - (i + Lk - Lq) + R] += dy[j];
        for (int64_t j = keys.to; j < Lk; j++)
            high += (double)dy[j];
    }
    dtable[0] += (real)low;
    dtable[2 * R] += (real)high;
}

static bool positions_relative_backward(int64_t H, int64_t R, int64_t Lq, int64_t Lk,
                                        const void *dy_, void *dtable_)
{
    const real *dy = dy_;
    real *dtable = dtable_;
#pragma omp parallel for schedule(static) if (H * Lq * Lk > PARALLEL_WORK)
    for (int64_t h = 0; h < H; h++)
        positions_relative_backward_head(R, Lq, Lk, dy + h * Lq * Lk, dtable + h * (2 * R + 1));
    return true;
}

KERNELS(positions) = {positions_turn, positions_relative_forward, positions_relative_backward};
