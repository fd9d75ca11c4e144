#include "ops/arithmetic.h"
#include "ops/plain/broadcast.h"

static real arithmetic_y(enum arithmetic kind, real a, real b, bool condition)
{
    switch (kind) {
    case ARITHMETIC_ADD:
        return a + b;
    case ARITHMETIC_SUBTRACT:
        return a - b;
    case ARITHMETIC_MULTIPLY:
        return a * b;
    case ARITHMETIC_DIVIDE:
        return a / b;
    case ARITHMETIC_MAXIMUM: /* NaN, if one is NaN */
        return real_below(b, a) || real_is_nan(a) ? a : b;
    case ARITHMETIC_MINIMUM:
        return real_below(a, b) || real_is_nan(a) ? a : b;
    case ARITHMETIC_WHERE:
    default:
        return condition ? a : b;
    }
}

/* The share of dy of the larger one, "up", next to "down". */
static real arithmetic_share(real up, real down, real dy)
{
    const bool equal = real_value(up) == real_value(down);
    return real_below(down, up) ? dy : equal ? dy / 2 : 0;
}

static real arithmetic_da(enum arithmetic kind, real a, real b, bool condition,
                          real dy)
{
    switch (kind) {
    case ARITHMETIC_ADD:
    case ARITHMETIC_SUBTRACT:
        return dy;
    case ARITHMETIC_MULTIPLY:
        return dy * b;
    case ARITHMETIC_DIVIDE:
        return dy / b;
    case ARITHMETIC_MAXIMUM:
        return arithmetic_share(a, b, dy);
    case ARITHMETIC_MINIMUM:
        return arithmetic_share(b, a, dy);
    case ARITHMETIC_WHERE:
    default:
        return condition ? dy : 0;
    }
}

static real arithmetic_db(enum arithmetic kind, real a, real b, bool condition,
                          real dy)
{
    switch (kind) {
    case ARITHMETIC_ADD:
        return dy;
    case ARITHMETIC_SUBTRACT:
        return -dy;
    case ARITHMETIC_MULTIPLY:
        return dy * a;
    case ARITHMETIC_DIVIDE: /* -dy a / b^2; b^2 itself could overflow */
        return -dy / b * (a / b);
    case ARITHMETIC_MAXIMUM:
        return arithmetic_share(b, a, dy);
    case ARITHMETIC_MINIMUM:
        return arithmetic_share(a, b, dy);
    case ARITHMETIC_WHERE:
    default:
        return condition ? 0 : dy;
    }
}

/* An operand's element for place n; one that no formula needs may be NULL. */
static real element(const struct broadcast *plan, int operand, const void *x,
                    int64_t n)
{
    return x ? ((const real *)x)[walk_at(plan, operand, n)] : 0;
}

static bool holds(const struct broadcast *plan, const void *condition,
                  int64_t n)
{
    return condition && ((const uint8_t *)condition)[walk_at(plan, 3, n)];
}

static bool arithmetic_forward(enum arithmetic kind,
                               const struct broadcast *plan, const void *a,
                               const void *b, const void *condition, void *y_)
{
    real *y = y_;
    for (int64_t n = 0; n < walk_size(plan); n++)
        y[walk_at(plan, 0, n)] =
            arithmetic_y(kind, element(plan, 1, a, n), element(plan, 2, b, n),
                         holds(plan, condition, n));
    return true;
}

/* A gradient is summed over the axes along which its operand stretches. */
static bool arithmetic_backward(enum arithmetic kind, int side, bool fresh,
                                const struct broadcast *plan, const void *dy_,
                                const void *a_, const void *b_,
                                const void *condition, void *dx_)
{
    real *dx = dx_;
    zero_if_fresh(fresh, walk_elements(plan, side), dx);
    for (int64_t n = 0; n < walk_size(plan); n++) {
        const real dy = element(plan, 0, dy_, n), a = element(plan, 1, a_, n),
                   b = element(plan, 2, b_, n);
        const bool is_a = holds(plan, condition, n);
        dx[walk_at(plan, side, n)] += side == 1
                                          ? arithmetic_da(kind, a, b, is_a, dy)
                                          : arithmetic_db(kind, a, b, is_a, dy);
    }
    return true;
}

KERNELS(arithmetic) = {arithmetic_forward, arithmetic_backward};
