/*
 * Traverses broadcast operands: the twin of ops/cpu/broadcast.h. A formula is a function object
 * that maps an element, the operands' values at one index, to a number. It does not handle
 * broadcasting or memory layout.
 */
#ifndef SOFTBACK_CUDA_BROADCAST_CUH
#define SOFTBACK_CUDA_BROADCAST_CUH

#include "cuda/divisor.cuh"
#include "cuda/pack.cuh"
#include "cuda/sums.cuh"
#include "ops/broadcast.h"

/* The values of operands 0, 1, 2 and 3 at one index; missing operands are 0. */
template <class real> struct element {
    real y, a, b;
    bool condition;
    real factor;
};

/* The formulas y and a. */
struct y_itself {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return e.y;
    }
};
struct a_itself {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return e.a;
    }
};

/* The offset of each operand, in elements. */
struct offsets {
    int64_t of[BROADCAST_OPERANDS];
};

template <class T> struct operands {
    const T *y, *a, *b; /* NULL if the formula does not read it */
    const uint8_t *condition;
    real_of<T> factor; /* for the formula */

    static __device__ real_of<T> value(const T *x, int64_t at)
    {
        return x ? (real_of<T>)x[at] : real_of<T>();
    }
    __device__ element<real_of<T>> at(const offsets &at) const
    {
        return {value(y, at.of[0]), value(a, at.of[1]), value(b, at.of[2]),
                condition && condition[at.of[3]], factor};
    }
};

/* Some axes of a traversal, and the number of their index tuples. */
struct axes {
    int count = 0;
    int64_t size = 1;
    divisor dim[SB_MAX_RANK];
    offsets stride[SB_MAX_RANK] = {};

    void add(const broadcast &plan, int axis)
    {
        size *= plan.dim[axis];
        dim[count] = divisor(plan.dim[axis]);
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            stride[count].of[k] = plan.stride[k][axis];
        count++;
    }

    /* `at` plus the offsets of the index-th tuple. */
    __device__ offsets locate(offsets at, int64_t index) const
    {
        for (int j = count - 1; j >= 0; j--) {
            const int64_t rest = j > 0 ? dim[j].quotient(index) : 0, i = index - rest * dim[j].d;
            for (int k = 0; k < BROADCAST_OPERANDS; k++)
                at.of[k] += i * stride[j].of[k];
            index = rest;
        }
        return at;
    }
};

/* A pack of each operand along the last axis. */
template <class T> struct strip {
    pack<T> y, a, b;
    pack<uint8_t, PACK<T>> condition;
    real_of<T> factor;

    template <class X>
    static __device__ pack<X, PACK<T>> load(const X *x, int64_t at, int64_t step, int64_t left)
    {
        if (!x)
            return pack<X, PACK<T>>::all(X());
        return step ? pack<X, PACK<T>>::load(x + at, left) : pack<X, PACK<T>>::all(x[at]);
    }
    __device__ strip(const operands<T> &in, const offsets &at, const offsets &step, int64_t left)
        : y(load(in.y, at.of[0], step.of[0], left)), a(load(in.a, at.of[1], step.of[1], left)),
          b(load(in.b, at.of[2], step.of[2], left)),
          condition(load(in.condition, at.of[3], step.of[3], left)), factor(in.factor)
    {
    }
    __device__ element<real_of<T>> at(int e) const
    {
        return {(real_of<T>)y.of[e], (real_of<T>)a.of[e], (real_of<T>)b.of[e], condition.of[e] != 0,
                factor};
    }
};

/* The last axis has n elements, `step` apart, in `pieces` packs. */
template <class T, class Formula>
__global__ void map_strips(axes outer, int64_t n, divisor pieces, offsets step, operands<T> in,
                           bool add, T *y)
{
    GRID_STRIDE(piece, outer.size * pieces.d)
    {
        const int64_t row = pieces.quotient(piece);
        const int64_t column = (piece - row * pieces.d) * PACK<T>, left = n - column;
        offsets at;
        for (int k = 0; k < BROADCAST_OPERANDS; k++)
            at.of[k] = column * step.of[k];
        at = outer.locate(at, row);
        const strip<T> s(in, at, step, left);
        real_pack<T> value;
        for (int e = 0; e < PACK<T>; e++)
            value.of[e] = Formula()(s.at(e));
        if (add) {
            const auto old = real_pack<T>::load(y + at.of[0], left);
            for (int e = 0; e < PACK<T>; e++)
                value.of[e] = old.of[e] + value.of[e];
        }
        value.store(y + at.of[0], left);
    }
}

/* y = formula, or y += formula; y has the full shape. */
template <class T, class Formula>
bool broadcast_map(const char *operation, const broadcast &plan, const operands<T> &in, bool add,
                   T *y)
{
    const int last = plan.rank - 1;
    axes outer;
    for (int axis = 0; axis < last; axis++)
        outer.add(plan, axis);
    offsets step;
    for (int k = 0; k < BROADCAST_OPERANDS; k++)
        step.of[k] = plan.stride[k][last];
    const int64_t n = plan.dim[last], pieces = pack_count(n, PACK<T>);
    LAUNCH_EACH(outer.size * pieces, (map_strips<T, Formula>), outer, n, divisor(pieces), step, in,
                add, y);
    return launched(operation);
}

/* The same for y = x or y += x of any elements of Word's width: x is operand 1. */
template <class Word>
bool broadcast_copy(const char *operation, const broadcast &plan, const void *x, bool add, void *y)
{
    const operands<Word> in = {nullptr, (const Word *)x, nullptr, nullptr, 0};
    return broadcast_map<Word, a_itself>(operation, plan, in, add, (Word *)y);
}

/* Calls copy(Word()) with a number of this width. */
template <class Copy> bool with_word(size_t width, Copy copy)
{
    return width == 1   ? copy(uint8_t())
           : width == 2 ? copy(uint16_t())
           : width == 4 ? copy(uint32_t())
                        : copy(uint64_t());
}

/* The terms of a sum: the formula at the index tuples of `summed`, for each tuple of `kept`. */
template <class T, class Formula> struct formula_terms : Formula {
    axes kept, summed;
    operands<T> in;

    formula_terms(Formula formula, const operands<T> &in) : Formula(formula), in(in)
    {
    }

    __device__ offsets start(int64_t sum) const
    {
        return kept.locate({}, sum);
    }
    __device__ double term(const offsets &start, int64_t i) const
    {
        return (double)(*this)(in.at(summed.locate(start, i)));
    }
};

/* Whether operand `target` is broadcast along an axis. */
inline bool is_broadcast(const broadcast &plan, int target)
{
    for (int axis = 0; axis < plan.rank; axis++)
        if (plan.stride[target][axis] == 0)
            return true;
    return false;
}

/*
 * x = formula / divisor, or x += formula / divisor, summed over the axes on which operand `target`
 * is broadcast. x has the shape of that operand, which is contiguous, so the i-th tuple of its axes
 * is its i-th element.
 */
template <class T, class Formula>
bool sum_broadcast(const char *operation, const broadcast &plan, const operands<T> &in, int target,
                   Formula formula, double divisor, bool add, T *x)
{
    formula_terms<T, Formula> terms(formula, in);
    for (int axis = 0; axis < plan.rank; axis++)
        (plan.stride[target][axis] ? terms.kept : terms.summed).add(plan, axis);
    const bool along = plan.stride[target][plan.rank - 1] == 0;
    return sum_all(operation, terms.kept.size, terms.summed.size, along, terms,
                   sum_target<T>{divisor, add, x});
}

/* The same, also where there is nothing to sum. */
template <class T, class Formula>
bool broadcast_sum(const char *operation, const broadcast &plan, const operands<T> &in, int target,
                   double divisor, bool add, T *x)
{
    return is_broadcast(plan, target) || divisor != 1
               ? sum_broadcast(operation, plan, in, target, Formula(), divisor, add, x)
               : broadcast_map<T, Formula>(operation, plan, in, add, x);
}

#endif
