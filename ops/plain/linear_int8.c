#include "ops/linear_int8.h"
#include "ops/plain/activation.h"
#include "tensor/memory.h"

/* s = max |x| / 127; NaN where an element is infinite or NaN */
static double scale_of(int64_t n, const real *x)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(real_value(x[i]));
        if (!(size < INFINITY))
            return NAN;
        most = size > most ? size : most;
    }
    return most / 127;
}

/* x / s, rounded to the nearest integer, a half away from 0 */
static int8_t integer_of(real x, double scale)
{
    return scale > 0 ? (int8_t)round(real_value(x) / scale) : 0;
}

/* scales (out), then integers (out, in) */
static int64_t linear_int8_pack(int64_t out, int64_t in, const void *weight_,
                                void *packed)
{
    const real *weight = weight_;
    double *scale = packed;
    int8_t *q = packed ? (int8_t *)(scale + out) : NULL;
    for (int64_t o = 0; packed && o < out; o++) {
        scale[o] = scale_of(in, weight + o * in);
        for (int64_t i = 0; i < in; i++)
            q[o * in + i] = integer_of(weight[o * in + i], scale[o]);
    }
    return out * (int64_t)sizeof *scale + out * in;
}

/* y_o = activation(s_x s_o sum_i q_x,i q_o,i + b_o) */
static bool linear_int8_forward(const struct linear_shape *s, const void *x_,
                                const void *packed, const void *bias_, void *y_)
{
    const real *x = x_, *bias = bias_;
    const double *scale = packed;
    const int8_t *q = (const int8_t *)(scale + s->out);
    const enum elementwise activation = function_of(s->activation);
    real *y = y_;
    for (int64_t r = 0; r < s->rows; r++, x += s->in) {
        const double x_scale = scale_of(s->in, x);
        for (int64_t o = 0; o < s->out; o++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < s->in; i++)
                sum += integer_of(x[i], x_scale) * q[o * s->in + i];
            const real z = (real)(x_scale * scale[o] * (double)sum);
            y[r * s->out + o] =
                elementwise_value(activation, 1, bias ? z + bias[o] : z);
        }
    }
    return true;
}

KERNELS(linear_int8) = {linear_int8_pack, linear_int8_forward};
