#include "cuda/broadcast.cuh"
#include "ops/arithmetic.h"

namespace
{

/* y of an element */
template <class T> __device__ T value(arithmetic kind, const element<T> &e)
{
    switch (kind) {
    case ARITHMETIC_ADD:
        return e.a + e.b;
    case ARITHMETIC_SUBTRACT:
        return e.a - e.b;
    case ARITHMETIC_MULTIPLY:
        return e.a * e.b;
    case ARITHMETIC_DIVIDE:
        return e.a / e.b;
    case ARITHMETIC_WHERE:
        return e.condition ? e.a : e.b;
    case ARITHMETIC_MAXIMUM:
        return e.b < e.a || e.a != e.a ? e.a : e.b;
    case ARITHMETIC_MINIMUM:
        return e.a < e.b || e.a != e.a ? e.a : e.b;
    case ARITHMETIC_KINDS:
        break;
    }
    return 0;
}

/* The gradient of the larger one, "up", next to "down": half of dy where both are equal. */
template <class T> __device__ T share(T up, T down, T dy)
{
    return down < up ? dy : up == down ? dy / 2 : 0;
}

/* The terms of the gradient of a; e.y is dy. */
template <class T> __device__ T slope_a(arithmetic kind, const element<T> &e)
{
    switch (kind) {
    case ARITHMETIC_ADD: /* y = a + b, a - b */
    case ARITHMETIC_SUBTRACT:
        return e.y;
    case ARITHMETIC_MULTIPLY: /* y = a b */
        return e.y * e.b;
    case ARITHMETIC_DIVIDE: /* y = a / b */
        return e.y / e.b;
    case ARITHMETIC_WHERE: /* y = condition ? a : b */
        return e.condition ? e.y : 0;
    case ARITHMETIC_MAXIMUM: /* y = max(a, b) */
        return share(e.a, e.b, e.y);
    case ARITHMETIC_MINIMUM: /* y = min(a, b) */
        return share(e.b, e.a, e.y);
    case ARITHMETIC_KINDS:
        break;
    }
    return 0;
}

/* The same for b. */
template <class T> __device__ T slope_b(arithmetic kind, const element<T> &e)
{
    switch (kind) {
    case ARITHMETIC_ADD: /* y = a + b */
        return e.y;
    case ARITHMETIC_SUBTRACT: /* y = a - b */
        return -e.y;
    case ARITHMETIC_MULTIPLY: /* y = a b */
        return e.y * e.a;
    case ARITHMETIC_DIVIDE: /* y = a / b: db = -dy a / b^2, where b^2 itself could overflow */
        return -e.y / e.b * (e.a / e.b);
    case ARITHMETIC_WHERE: /* y = condition ? a : b */
        return e.condition ? 0 : e.y;
    case ARITHMETIC_MAXIMUM: /* y = max(a, b) */
        return share(e.b, e.a, e.y);
    case ARITHMETIC_MINIMUM: /* y = min(a, b) */
        return share(e.a, e.b, e.y);
    case ARITHMETIC_KINDS:
        break;
    }
    return 0;
}

/* Element by element, each kind has a kernel of its own. */
template <arithmetic KIND> struct value_of {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return value(KIND, e);
    }
};

template <arithmetic KIND, int SIDE> struct slope_of {
    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return SIDE == 1 ? slope_a(KIND, e) : slope_b(KIND, e);
    }
};

/* In a sum, locating a term takes longer than choosing its formula: one kernel serves all kinds. */
struct slope {
    arithmetic kind;
    int side;

    template <class T> __device__ T operator()(const element<T> &e) const
    {
        return side == 1 ? slope_a(kind, e) : slope_b(kind, e);
    }
};

template <class T>
using map = bool (*)(const char *operation, const broadcast &plan, const operands<T> &in, bool add,
                     T *y);

template <class T> struct maps {
    map<T> y, dx[2]; /* da, db */
};

template <class T, arithmetic KIND>
constexpr maps<T> of = {broadcast_map<T, value_of<KIND>>,
                        {broadcast_map<T, slope_of<KIND, 1>>, broadcast_map<T, slope_of<KIND, 2>>}};

template <class T> const maps<T> &maps_of(arithmetic kind)
{
    static const maps<T> all[ARITHMETIC_KINDS] = {
        of<T, ARITHMETIC_ADD>,    of<T, ARITHMETIC_SUBTRACT>, of<T, ARITHMETIC_MULTIPLY>,
        of<T, ARITHMETIC_DIVIDE>, of<T, ARITHMETIC_WHERE>,    of<T, ARITHMETIC_MAXIMUM>,
        of<T, ARITHMETIC_MINIMUM>};
    return all[kind];
}

template <class T>
bool forward(arithmetic kind, const broadcast *plan, const void *a, const void *b,
             const void *condition, void *y)
{
    const operands<T> in = {nullptr, (const T *)a, (const T *)b, (const uint8_t *)condition, 0};
    return maps_of<T>(kind).y("arithmetic", *plan, in, false, (T *)y);
}

template <class T>
bool backward(arithmetic kind, int side, bool fresh, const broadcast *plan, const void *dy,
              const void *a, const void *b, const void *condition, void *dx)
{
    const operands<T> in = {(const T *)dy, (const T *)a, (const T *)b, (const uint8_t *)condition,
                            0};
    if (is_broadcast(*plan, side))
        return sum_broadcast("arithmetic", *plan, in, side, slope{kind, side}, 1, !fresh, (T *)dx);
    return maps_of<T>(kind).dx[side - 1]("arithmetic", *plan, in, !fresh, (T *)dx);
}

} // namespace

KERNELS_AND_BF16(arithmetic, forward<T>, backward<T>);
