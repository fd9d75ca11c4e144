#include "ops/normalization.h"
#include "ops/plain/dropout.h"

/* What is normed: x, or of residual_layer_norm sum = x + dropout(branch) */
static const real *layer_norm_input(const struct layer_norm_forward *f)
{
    const real *x = f->x, *branch = f->branch;
    real *sum = f->sum;
    for (int64_t i = 0; branch && i < f->rows * f->C; i++)
        sum[i] = x[i] + dropout_here(&f->dropout, i, branch[i]);
    return branch ? sum : x;
}

/* y = gain (x - m) / s + bias, s = sqrt(v + epsilon), with m and v the mean and
   the (biased) variance of a row of x; scale = 1 / s
   (Ba, Kiros and Hinton 2016). With m0 = sum / C, m = m0 + mean(x - m0) has no
   rounding error, so that a row of equal values has no variance. */
static bool layer_norm_forward(const struct layer_norm_forward *f)
{
    const real *x = layer_norm_input(f), *gain = f->gain, *bias = f->bias;
    const int64_t C = f->C;
    real *y = f->y, *mean = f->mean, *scale = f->scale;
    for (int64_t r = 0; r < f->rows; r++, x += C, y += C) {
        real sum = 0, rest = 0, squares = 0;
        for (int64_t c = 0; c < C; c++)
            sum += x[c];
        for (int64_t c = 0; c < C; c++)
            rest += x[c] - sum / (real)C;
        const real m = mean[r] = sum / (real)C + rest / (real)C;
        for (int64_t c = 0; c < C; c++)
            squares += (x[c] - m) * (x[c] - m);
        scale[r] = 1 / real_sqrt(squares / (real)C + (real)f->epsilon);
        for (int64_t c = 0; c < C; c++)
            y[c] = gain[c] * (x[c] - m) * scale[r] + (bias ? bias[c] : 0);
    }
    return true;
}

/* With h = (x - m) scale, u = gain dy, and dsum the gradient that reaches sum
   from its other uses, all of one row; x is what was normed:
   g = (u - mean u - h mean(u h)) scale + dsum
   dx += g     dbranch += dropout(g)     dgain += dy h     dbias += dy */
static void layer_norm_backward_row(const struct layer_norm_backward *b,
                                    int64_t r)
{
    const int64_t C = b->C;
    const real *x = (const real *)b->x + r * C,
               *dy = (const real *)b->dy + r * C;
    const real *gain = b->gain, *dsum = b->dsum;
    const real m = ((const real *)b->mean)[r];
    const real scale = ((const real *)b->scale)[r]; /* 1 / s */
    real *dx = b->dx.to, *dbranch = b->dbranch.to;
    real *dgain = b->dgain.to, *dbias = b->dbias.to;
    real mean_u = 0, mean_uh = 0;
    for (int64_t c = 0; c < C; c++) {
        mean_u += gain[c] * dy[c] / (real)C;
        mean_uh += gain[c] * dy[c] * (x[c] - m) * scale / (real)C;
    }
    for (int64_t c = 0, i = r * C; c < C; c++, i++) {
        const real h = (x[c] - m) * scale, u = gain[c] * dy[c];
        const real g =
            (u - mean_u - h * mean_uh) * scale + (dsum ? dsum[i] : 0);
        if (dx)
            dx[i] += g;
        if (dbranch)
            dbranch[i] += dropout_here(&b->dropout, i, g);
        if (dgain)
            dgain[c] += dy[c] * h;
        if (dbias)
            dbias[c] += dy[c];
    }
}

static bool layer_norm_backward(const struct layer_norm_backward *b)
{
    const int64_t n = b->rows * b->C;
    zero_if_fresh(b->dx.to && b->dx.fresh, n, b->dx.to);
    zero_if_fresh(b->dbranch.to && b->dbranch.fresh, n, b->dbranch.to);
    zero_if_fresh(b->dgain.to && b->dgain.fresh, b->C, b->dgain.to);
    zero_if_fresh(b->dbias.to && b->dbias.fresh, b->C, b->dbias.to);
    for (int64_t r = 0; r < b->rows; r++)
        layer_norm_backward_row(b, r);
    return true;
}

KERNELS(layer_norm) = {layer_norm_forward, layer_norm_backward};
