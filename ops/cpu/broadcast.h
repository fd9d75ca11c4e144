/*
 * Traverses broadcast operands in strips: runs of up to STRIP elements along the last axis. A
 * formula is a flat loop over a strip. An operand that is broadcast along the last axis is expanded
 * into a buffer first, so formulas do not handle broadcasting.
 *
 * broadcast_map writes a formula's value. broadcast_sum sums it over the axes on which one operand
 * is broadcast, which gives the gradient of that operand. Sums are in float64, in an order that the
 * shape determines.
 */
#ifndef SOFTBACK_OPS_CPU_BROADCAST_H
#define SOFTBACK_OPS_CPU_BROADCAST_H

#include "ops/broadcast.h"
#include "ops/cpu/real.h"

enum { STRIP = 512, SLABS = 64 };

struct strip {
    int64_t n;
    const real *y, *a, *b;    /* operands 0, 1 and 2, n contiguous elements each */
    const uint8_t *condition; /* operand 3 */
    real factor;
};

struct walk {
    const struct broadcast *plan;
    const void *operand[BROADCAST_OPERANDS]; /* NULL if the formula does not read it */
    void (*formula)(const struct strip *s, real *restrict out);
    real factor; /* for the formula */
};

/* A formula: `out` is an expression of element i of the strip's operands. */
#define FORMULA(name, ...)                                                                         \
    static void name(const struct strip *s, real *restrict out)                                    \
    {                                                                                              \
        for (int64_t i = 0; i < s->n; i++)                                                         \
            out[i] = __VA_ARGS__;                                                                  \
    }

/* Some axes of a traversal, and the number of their index tuples. */
struct axes {
    int count, axis[SB_MAX_RANK];
    int64_t size;
};

/* Buffers for the expanded operands of a strip. */
struct strip_room {
    real fill[3][STRIP];
    uint8_t fill_condition[STRIP];
};

static inline void axes_add(struct axes *axes, const struct walk *walk, int axis)
{
    axes->axis[axes->count++] = axis;
    axes->size *= walk->plan->dim[axis];
}

/* Adds to each operand's offset `at` what the index-th tuple of the axes contributes. */
static inline void axes_locate(const struct axes *axes, const struct walk *walk, int64_t index,
                               int64_t at[BROADCAST_OPERANDS])
{
    for (int j = axes->count - 1; j >= 0; j--) {
        int axis = axes->axis[j];
        int64_t i = index;
        if (j > 0) {
            i = index % walk->plan->dim[axis];
            index /= walk->plan->dim[axis];
        }
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            at[k] += i * walk->plan->stride[k][axis];
    }
}

/* Operand k as n contiguous elements: in place, or expanded if it is broadcast. */
static inline const real *strip_operand(const struct walk *walk, int k, int64_t n, int64_t at,
                                        real *restrict fill)
{
    const real *x = walk->operand[k];
    if (!x || walk->plan->stride[k][walk->plan->rank - 1])
        return x ? x + at : NULL;
    for (int64_t i = 0; i < n; i++)
        fill[i] = x[at];
    return fill;
}

/* The formula's value for n elements (at most STRIP) from the offsets `at` on. */
static inline void strip_run(const struct walk *walk, int64_t n,
                             const int64_t at[BROADCAST_OPERANDS], real *restrict out)
{
    struct strip_room room;
    struct strip s = {.n = n, .factor = walk->factor};
    s.y = strip_operand(walk, 0, n, at[0], room.fill[0]);
    s.a = strip_operand(walk, 1, n, at[1], room.fill[1]);
    s.b = strip_operand(walk, 2, n, at[2], room.fill[2]);
    const uint8_t *condition = walk->operand[3];
    if (condition && walk->plan->stride[3][walk->plan->rank - 1])
        s.condition = condition + at[3];
    else if (condition)
        s.condition = memset(room.fill_condition, condition[at[3]], (size_t)n);
    walk->formula(&s, out);
}

/* y = formula, or y += formula; y has the full shape. */
static inline void broadcast_map(const struct walk *walk, bool add, real *y)
{
    const int last = walk->plan->rank - 1;
    const int64_t n = walk->plan->dim[last], pieces = (n + STRIP - 1) / STRIP;
    struct axes outer = {.size = 1};
    for (int axis = 0; axis < last; axis++)
        axes_add(&outer, walk, axis);
#pragma omp parallel for schedule(static) if (outer.size * n > PARALLEL_WORK)
    for (int64_t piece = 0; piece < outer.size * pieces; piece++) {
        int64_t row = piece / pieces, column = (piece - row * pieces) * STRIP;
        int64_t at[BROADCAST_OPERANDS], length = smaller(n - column, STRIP);
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            at[k] = column * walk->plan->stride[k][last];
        axes_locate(&outer, walk, row, at);
        real sum[STRIP];
        strip_run(walk, length, at, add ? sum : y + at[0]);
        for (int64_t i = 0; add && i < length; i++)
            y[at[0] + i] += sum[i];
    }
}

/* The sum of the formula over a part of its strips: each tuple of `summed` has `pieces` of them,
   which lie along the last axis. */
static inline double sum_strips(const struct walk *walk, const struct axes *summed,
                                const int64_t base[BROADCAST_OPERANDS], int64_t pieces,
                                int64_t from, int64_t to)
{
    const int last = walk->plan->rank - 1;
    double total = 0;
    for (int64_t piece = from; piece < to; piece++) {
        int64_t row = piece / pieces, column = (piece - row * pieces) * STRIP;
        int64_t at[BROADCAST_OPERANDS];
        int64_t length = smaller(walk->plan->dim[last] - column, STRIP);
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            at[k] = base[k] + column * walk->plan->stride[k][last];
        axes_locate(summed, walk, row, at);
        real term[STRIP];
        strip_run(walk, length, at, term);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < length; i++)
            sum += (double)term[i];
        total += sum;
    }
    return total;
}

static inline void sum_store(double total, double divisor, bool add, real *x)
{
    *x = (add ? *x : 0) + (real)(total / divisor);
}

/* The target is broadcast along the last axis: each of its elements is a sum of strips. */
static inline void sum_last(const struct walk *walk, const struct axes *kept,
                            const struct axes *summed, int target, double divisor, bool add,
                            real *x)
{
    const int64_t n = walk->plan->dim[walk->plan->rank - 1], pieces = (n + STRIP - 1) / STRIP;
    const int64_t strips = summed->size * pieces;
    if (kept->size == 1) { /* a single sum: in slabs, so that threads share the work */
        double part[SLABS], total = 0;
#pragma omp parallel for schedule(static) if (summed->size * n > PARALLEL_WORK)
        for (int64_t slab = 0; slab < SLABS; slab++)
            part[slab] = sum_strips(walk, summed, (int64_t[BROADCAST_OPERANDS]){0}, pieces,
                                    strips * slab / SLABS, strips * (slab + 1) / SLABS);
        for (int slab = 0; slab < SLABS; slab++)
            total += part[slab];
        sum_store(total, divisor, add, x);
        return;
    }
#pragma omp parallel for schedule(static) if (kept->size * summed->size * n > PARALLEL_WORK)
    for (int64_t i = 0; i < kept->size; i++) {
        int64_t at[BROADCAST_OPERANDS] = {0};
        axes_locate(kept, walk, i, at);
        double total = sum_strips(walk, summed, at, pieces, 0, strips);
        sum_store(total, divisor, add, x + at[target]);
    }
}

/* The target has the last axis: blocks of its columns are summed row by row. */
static inline void sum_columns(const struct walk *walk, const struct axes *kept,
                               const struct axes *summed, int target, double divisor, bool add,
                               real *x)
{
    const int last = walk->plan->rank - 1;
    const int64_t n = walk->plan->dim[last];
    const int64_t width = n / 8 < 64 ? 64 : n / 8 > STRIP ? STRIP : n / 8;
    const int64_t blocks = (n + width - 1) / width;
#pragma omp parallel for schedule(static) if (kept->size * summed->size * n > PARALLEL_WORK)
    for (int64_t unit = 0; unit < kept->size * blocks; unit++) {
        int64_t column = unit % blocks * width, length = smaller(n - column, width);
        int64_t base[BROADCAST_OPERANDS];
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            base[k] = column * walk->plan->stride[k][last];
        axes_locate(kept, walk, unit / blocks, base);
        double total[STRIP];
        memset(total, 0, (size_t)length * sizeof *total);
        for (int64_t row = 0; row < summed->size; row++) {
            int64_t at[BROADCAST_OPERANDS];
            memcpy(at, base, sizeof at);
            axes_locate(summed, walk, row, at);
            real term[STRIP];
            strip_run(walk, length, at, term);
            for (int64_t i = 0; i < length; i++)
                total[i] += (double)term[i];
        }
        for (int64_t i = 0; i < length; i++)
            sum_store(total[i], divisor, add, x + base[target] + i);
    }
}

/*
 * x = formula / divisor, or x += formula / divisor, summed over the axes on which operand `target`
 * is broadcast. x has the shape of that operand.
 */
static inline void broadcast_sum(const struct walk *walk, int target, double divisor, bool add,
                                 real *x)
{
    const int last = walk->plan->rank - 1;
    struct axes kept = {.size = 1}, summed = {.size = 1};
    for (int axis = 0; axis < last; axis++)
        axes_add(walk->plan->stride[target][axis] ? &kept : &summed, walk, axis);
    bool has_last = walk->plan->stride[target][last] != 0;
    if (has_last && summed.count == 0 && divisor == 1)
        broadcast_map(walk, add, x);
    else if (has_last)
        sum_columns(walk, &kept, &summed, target, divisor, add, x);
    else
        sum_last(walk, &kept, &summed, target, divisor, add, x);
}

#endif
