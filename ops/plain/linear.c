#include "ops/linear.h"
#include "ops/plain/activation.h"

/* z = x W' + b     y = activation(z) */
static bool linear_forward(const struct linear_shape *s, const void *x_,
                           const void *weight_, const void *bias_, void *z_,
                           void *y_)
{
    const real *x = x_, *weight = weight_, *bias = bias_;
    const enum elementwise activation = function_of(s->activation);
    real *z = z_, *y = y_;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t o = 0; o < s->out; o++) {
            real sum = bias ? bias[o] : 0;
            for (int64_t i = 0; i < s->in; i++)
                sum += x[r * s->in + i] * weight[o * s->in + i];
            if (z)
                z[r * s->out + o] = sum;
            y[r * s->out + o] = elementwise_value(activation, 1, sum);
        }
    return true;
}

/* dz = dy activation'(z), by z or y, whichever was kept */
static bool linear_backward_activation(const struct linear_shape *s,
                                       const void *kept_, const void *dy_,
                                       void *dz_)
{
    const real *kept = kept_, *dy = dy_;
    const enum elementwise activation = function_of(s->activation);
    real *dz = dz_;
    for (int64_t i = 0; i < s->rows * s->out; i++)
        dz[i] = elementwise_dx(activation, 1, kept[i], kept[i], dy[i]);
    return true;
}

/* db = sum of dz's rows */
static bool linear_backward_bias(const struct linear_shape *s, const void *dz_,
                                 void *unused, bool fresh, void *dbias_)
{
    const real *dz = dz_;
    real *dbias = dbias_;
    (void)unused;
    zero_if_fresh(fresh, s->out, dbias);
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t o = 0; o < s->out; o++)
            dbias[o] += dz[r * s->out + o];
    return true;
}

/* dx = dz W */
static bool linear_backward_x(const struct linear_shape *s, const void *dz_,
                              const void *weight_, bool fresh, void *dx_)
{
    const real *dz = dz_, *weight = weight_;
    real *dx = dx_;
    zero_if_fresh(fresh, s->rows * s->in, dx);
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t o = 0; o < s->out; o++)
            for (int64_t i = 0; i < s->in; i++)
                dx[r * s->in + i] += dz[r * s->out + o] * weight[o * s->in + i];
    return true;
}

/* dW = dz' x */
static bool linear_backward_weight(const struct linear_shape *s,
                                   const void *dz_, const void *x_, bool fresh,
                                   void *dweight_)
{
    const real *dz = dz_, *x = x_;
    real *dweight = dweight_;
    zero_if_fresh(fresh, s->out * s->in, dweight);
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t o = 0; o < s->out; o++)
            for (int64_t i = 0; i < s->in; i++)
                dweight[o * s->in + i] += dz[r * s->out + o] * x[r * s->in + i];
    return true;
}

KERNELS(linear) = {NULL,
                   linear_forward,
                   linear_backward_activation,
                   linear_backward_bias,
                   linear_backward_x,
                   linear_backward_weight,
                   false};
