#include "ops/cpu/broadcast.h"
#include "ops/shape.h"

/* n copies of one element. */
static void expand_fill(size_t width, int64_t n, const char *from, char *to)
{
    if (width == 1)
        memset(to, *from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)i * width, from, width);
}

static bool expand_forward(size_t width, const struct broadcast *plan, const void *x_, void *y_)
{
    const char *x = x_;
    char *y = y_;
    const int last = plan->rank - 1;
    const int64_t n = plan->dim[last], pieces = (n + STRIP - 1) / STRIP;
    const struct walk walk = {.plan = plan};
    struct axes outer = {.size = 1};
    for (int axis = 0; axis < last; axis++)
        axes_add(&outer, &walk, axis);
#pragma omp parallel for schedule(static) if (outer.size * n > PARALLEL_WORK)
    for (int64_t piece = 0; piece < outer.size * pieces; piece++) {
        const int64_t row = piece / pieces, column = (piece - row * pieces) * STRIP;
        const int64_t length = smaller(n - column, STRIP);
        int64_t at[BROADCAST_OPERANDS] = {column, column * plan->stride[1][last]};
        axes_locate(&outer, &walk, row, at);
        const char *from = x + (size_t)at[1] * width;
        char *to = y + (size_t)at[0] * width;
        if (plan->stride[1][last])
            memcpy(to, from, (size_t)length * width);
        else
            expand_fill(width, length, from, to);
    }
    return true;
}

/* y repeats x: dx is the sum of dy over the copies */
FORMULA(expand_dy_itself, s->y[i])

static bool expand_backward(bool fresh, const struct broadcast *plan, const void *dy, void *dx)
{
    const struct walk walk = {plan, {dy}, expand_dy_itself, 0};
    broadcast_sum(&walk, 1, 1, !fresh, dx);
    return true;
}

KERNELS(expand) = {expand_forward, expand_backward};
