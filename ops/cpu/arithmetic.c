#include "ops/arithmetic.h"
#include "ops/cpu/broadcast.h"

/* In backward formulas s->y is dy; the results are summed into the gradient. */

static void arithmetic_add(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++)
        y[i] = s->a[i] + s->b[i];
}

/* y = a + b, a - b: da = dy */
static void arithmetic_dy_itself(const struct strip *s, real *restrict da)
{
    for (int64_t i = 0; i < s->n; i++)
        da[i] = s->y[i];
}

static void arithmetic_subtract(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++)
        y[i] = s->a[i] - s->b[i];
}

/* y = a - b */
static void arithmetic_subtract_db(const struct strip *s, real *restrict db)
{
    for (int64_t i = 0; i < s->n; i++)
        db[i] = -s->y[i];
}

static void arithmetic_multiply(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++)
        y[i] = s->a[i] * s->b[i];
}

/* y = a b */
static void arithmetic_multiply_da(const struct strip *s, real *restrict da)
{
    for (int64_t i = 0; i < s->n; i++)
        da[i] = s->y[i] * s->b[i];
}

static void arithmetic_multiply_db(const struct strip *s, real *restrict db)
{
    for (int64_t i = 0; i < s->n; i++)
        db[i] = s->y[i] * s->a[i];
}

static void arithmetic_divide(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++)
        y[i] = s->a[i] / s->b[i];
}

/* y = a / b */
static void arithmetic_divide_da(const struct strip *s, real *restrict da)
{
    for (int64_t i = 0; i < s->n; i++)
        da[i] = s->y[i] / s->b[i];
}

/* y = a / b: db = -dy a / b^2, where b^2 itself could overflow */
static void arithmetic_divide_db(const struct strip *s, real *restrict db)
{
    for (int64_t i = 0; i < s->n; i++)
        db[i] = -s->y[i] / s->b[i] * (s->a[i] / s->b[i]);
}

static void arithmetic_where(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real a = s->a[i], b = s->b[i]; /* reads both, so that the loop has no branch */
        y[i] = s->condition[i] ? a : b;
    }
}

/* y = condition ? a : b */
static void arithmetic_where_da(const struct strip *s, real *restrict da)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real dy = s->y[i];
        da[i] = s->condition[i] ? dy : 0;
    }
}

static void arithmetic_where_db(const struct strip *s, real *restrict db)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real dy = s->y[i];
        db[i] = s->condition[i] ? 0 : dy;
    }
}

static void arithmetic_maximum(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real a = s->a[i], b = s->b[i];
        const bool is_a = (b < a) | (a != a);
        y[i] = is_a ? a : b;
    }
}

static void arithmetic_minimum(const struct strip *s, real *restrict y)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real a = s->a[i], b = s->b[i];
        const bool is_a = (a < b) | (a != a);
        y[i] = is_a ? a : b;
    }
}

/* y = max(a, b), min(a, b): the gradient of a where it is the larger one, and half of dy where both
   are equal; below, of b. */
static void arithmetic_larger_a(const struct strip *s, real *restrict dx)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real a = s->a[i], b = s->b[i], dy = s->y[i], half = a == b ? dy / 2 : 0;
        dx[i] = b < a ? dy : half;
    }
}

static void arithmetic_larger_b(const struct strip *s, real *restrict dx)
{
    for (int64_t i = 0; i < s->n; i++) {
        const real a = s->a[i], b = s->b[i], dy = s->y[i], half = a == b ? dy / 2 : 0;
        dx[i] = a < b ? dy : half;
    }
}

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
