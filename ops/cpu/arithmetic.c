#include "ops/arithmetic.h"
#include "ops/cpu/broadcast.h"

/* Both are read before the choice, so that a loop has no branch. */
static inline real arithmetic_choose(bool condition, real a, real b)
{
    return condition ? a : b;
}

static inline real arithmetic_larger(real a, real b)
{
    return arithmetic_choose((b < a) | (a != a), a, b);
}

static inline real arithmetic_smaller(real a, real b)
{
    return arithmetic_choose((a < b) | (a != a), a, b);
}

/* The gradient of the first of two for their maximum: half of dy where both are equal. */
static inline real arithmetic_share(real a, real b, real dy)
{
    const real half = a == b ? dy / 2 : 0;
    return b < a ? dy : half;
}

FORMULA(arithmetic_add, s->a[i] + s->b[i])
FORMULA(arithmetic_subtract, s->a[i] - s->b[i])
FORMULA(arithmetic_multiply, s->a[i] * s->b[i])
FORMULA(arithmetic_divide, s->a[i] / s->b[i])
FORMULA(arithmetic_where, arithmetic_choose(s->condition[i], s->a[i], s->b[i]))
FORMULA(arithmetic_maximum, arithmetic_larger(s->a[i], s->b[i]))
FORMULA(arithmetic_minimum, arithmetic_smaller(s->a[i], s->b[i]))

/* In backward formulas s->y is dy; the results are summed into the gradient. */

/* y = a + b, a - b */
FORMULA(arithmetic_dy_itself, s->y[i])
FORMULA(arithmetic_subtract_db, -s->y[i])
/* y = a b */
FORMULA(arithmetic_multiply_da, s->y[i] * s->b[i])
FORMULA(arithmetic_multiply_db, s->y[i] * s->a[i])
/* y = a / b: db = -dy a / b^2, where b^2 itself could overflow */
FORMULA(arithmetic_divide_da, s->y[i] / s->b[i])
FORMULA(arithmetic_divide_db, -s->y[i] / s->b[i] * (s->a[i] / s->b[i]))
/* y = condition ? a : b */
FORMULA(arithmetic_where_da, arithmetic_choose(s->condition[i], s->y[i], 0))
FORMULA(arithmetic_where_db, arithmetic_choose(s->condition[i], 0, s->y[i]))
/* y = max(a, b), min(a, b) */
FORMULA(arithmetic_larger_a, arithmetic_share(s->a[i], s->b[i], s->y[i]))
FORMULA(arithmetic_larger_b, arithmetic_share(s->b[i], s->a[i], s->y[i]))

static const struct {
    void (*y)(const struct strip *s, real *restrict y);
    void (*dx[2])(const struct strip *s, real *restrict dx); /* da, db */
} formulas[ARITHMETIC_KINDS] = {
    [ARITHMETIC_ADD] = {arithmetic_add, {arithmetic_dy_itself, arithmetic_dy_itself}},
    [ARITHMETIC_SUBTRACT] = {arithmetic_subtract, {arithmetic_dy_itself, arithmetic_subtract_db}},
    [ARITHMETIC_MULTIPLY] = {arithmetic_multiply, {arithmetic_multiply_da, arithmetic_multiply_db}},
    [ARITHMETIC_DIVIDE] = {arithmetic_divide, {arithmetic_divide_da, arithmetic_divide_db}},
    [ARITHMETIC_WHERE] = {arithmetic_where, {arithmetic_where_da, arithmetic_where_db}},
    [ARITHMETIC_MAXIMUM] = {arithmetic_maximum, {arithmetic_larger_a, arithmetic_larger_b}},
    [ARITHMETIC_MINIMUM] = {arithmetic_minimum, {arithmetic_larger_b, arithmetic_larger_a}},
};

static bool arithmetic_forward(enum arithmetic kind, const struct broadcast *plan, const void *a,
                               const void *b, const void *condition, void *y)
{
    struct walk walk = {plan, {NULL, a, b, condition}, formulas[kind].y, 0};
    broadcast_map(&walk, false, y);
    return true;
}

static bool arithmetic_backward(enum arithmetic kind, int side, bool fresh,
                                const struct broadcast *plan, const void *dy, const void *a,
                                const void *b, const void *condition, void *dx)
{
    struct walk walk = {plan, {dy, a, b, condition}, formulas[kind].dx[side - 1], 0};
    broadcast_sum(&walk, side, 1, !fresh, dx);
    return true;
}

KERNELS(arithmetic) = {arithmetic_forward, arithmetic_backward};
