#include "ops/cpu/broadcast.h"
#include "ops/loss.h"

/* In a strip, y is x, a is dy and b is the target. */

FORMULA(squared_error_square, (s->y[i] - s->b[i]) * (s->y[i] - s->b[i]))

static bool squared_error_forward(const struct broadcast *plan, double divisor, const void *x,
                                  const void *target, void *y)
{
    struct walk walk = {plan, {x, NULL, target}, squared_error_square, 0};
    broadcast_sum(&walk, 1, divisor, false, y);
    return true;
}

/* y = sum of (x - target)^2 / n: dx = 2/n (x - target) dy, and dtarget = -dx */
FORMULA(squared_error_square_dx, s->factor *(s->y[i] - s->b[i]) * s->a[i])

static bool squared_error_backward(const struct broadcast *plan, double factor, bool fresh,
                                   const void *x, const void *target, const void *dy, void *dx)
{
    struct walk walk = {plan, {x, dy, target}, squared_error_square_dx, (real)factor};
    broadcast_map(&walk, !fresh, dx);
    return true;
}

KERNELS(mean_squared_error) = {squared_error_forward, squared_error_backward};
