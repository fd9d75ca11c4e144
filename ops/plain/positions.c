#include "ops/positions.h"
#include "ops/plain/real.h"

/* rotary: each pair (x_i, x_{i + D/2}) is turned by the angle t base^(-2i/D),
   whose cosine and sine the table holds for every t and i. Backward is dy
   turned by the opposite angle. (Su et al. 2021) */
static bool rotary(int64_t B, int64_t L, int64_t H, int64_t D,
                   const void *table, bool backwards, bool add, const void *x_,
                   void *y_)
{
    const int64_t half = D / 2;
    const real *cosine = table, *sine = cosine + L * half, *x = x_;
    real *y = y_;
    for (int64_t head = 0; head < B * L * H; head++, x += D, y += D)
        for (int64_t i = 0; i < half; i++) {
            const int64_t t = head / H % L;
            const real c = cosine[t * half + i],
                       s = backwards ? -sine[t * half + i] : sine[t * half + i];
            const real a = x[i] * c - x[i + half] * s,
                       b = x[i] * s + x[i + half] * c;
            y[i] = (add ? y[i] : 0) + a;
            y[i + half] = (add ? y[i + half] : 0) + b;
        }
    return true;
}

/* clip(j - (i + Lk - Lq), -R, R) + R */
static int64_t distance(int64_t R, int64_t Lq, int64_t Lk, int64_t i, int64_t j)
{
    const int64_t d = j - (i + Lk - Lq);
    return (d < -R ? -R : d > R ? R : d) + R;
}

/* relative_bias: y[h, i, j] = table[h, distance of i and j]
   (Shaw, Uszkoreit and Vaswani 2018) */
static bool relative_bias_forward(int64_t H, int64_t R, int64_t Lq, int64_t Lk,
                                  const void *table_, void *y_)
{
    const real *table = table_;
    real *y = y_;
    for (int64_t h = 0; h < H; h++)
        for (int64_t i = 0; i < Lq; i++)
            for (int64_t j = 0; j < Lk; j++)
                y[(h * Lq + i) * Lk + j] =
                    table[h * (2 * R + 1) + distance(R, Lq, Lk, i, j)];
    return true;
}

/* dtable[h, r] = sum of dy over the pairs at that distance */
static bool relative_bias_backward(int64_t H, int64_t R, int64_t Lq, int64_t Lk,
                                   const void *dy_, void *dtable_)
{
    const real *dy = dy_;
    real *dtable = dtable_;
    for (int64_t h = 0; h < H; h++)
        for (int64_t i = 0; i < Lq; i++)
            for (int64_t j = 0; j < Lk; j++)
                dtable[h * (2 * R + 1) + distance(R, Lq, Lk, i, j)] +=
                    dy[(h * Lq + i) * Lk + j];
    return true;
}

KERNELS(positions) = {rotary, relative_bias_forward, relative_bias_backward};
