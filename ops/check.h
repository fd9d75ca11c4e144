/* Checks of arguments that several operations share. Each fails in the name of `op`. */
#ifndef SOFTBACK_OPS_CHECK_H
#define SOFTBACK_OPS_CHECK_H

#include "tensor/failure.h"
#include "tensor/storage.h"
#include <float.h>

static inline bool check_real(const char *op, const char *name, const sb_tensor *t)
{
    return sb_dtype_is_real(t->dtype) || sb_fail("%s: %s is of %s; it must be f32, f64 or bf16", op,
                                                 name, sb_dtype_name(t->dtype));
}

static inline bool check_ids(const char *op, const char *name, const sb_tensor *t)
{
    return t->dtype == SB_I32 ||
           sb_fail("%s: %s are of %s; they must be i32", op, name, sb_dtype_name(t->dtype));
}

/* For an operation over the last axis: x (..., C) is real and not a scalar. */
static inline bool check_rows(const char *op, const sb_tensor *x)
{
    if (!check_real(op, "x", x))
        return false;
    return x->rank >= 1 || sb_fail("%s: x is a scalar; it must have at least one axis", op);
}

/* For a parameter over x's last axis: t is (C). */
static inline bool check_vector(const char *op, const char *name, const sb_tensor *t,
                                const sb_tensor *x)
{
    if (!check_real(op, name, t))
        return false;
    if (t->rank == 1 && t->dim[0] == x->dim[x->rank - 1])
        return true;
    return sb_fail("%s: x is %s, %s is %s, not (%lld)", op, tensor_shape(x).text, name,
                   tensor_shape(t).text, (long long)x->dim[x->rank - 1]);
}

/* A factor of scores that f32 can hold: beyond its range 0 times -inf and inf times 0 are NaN. */
static inline double factor_in_range(sb_dtype dtype, double factor)
{
    const bool wide = dtype == SB_F64 || dtype == SB_DUAL || factor == 0;
    return wide ? factor : factor < FLT_MIN ? FLT_MIN : factor > FLT_MAX ? FLT_MAX : factor;
}

/* The number of rows of x (..., C); C may be 0. */
static inline int64_t row_count(const sb_tensor *x)
{
    return shape_size(x->rank - 1, x->dim);
}

/* The index tuple of the element at `position` in t, as "(1, 2)". */
static inline struct shape_text place_text(const sb_tensor *t, int64_t position)
{
    int64_t place[SB_MAX_RANK];
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        place[axis] = position % t->dim[axis];
        position /= t->dim[axis];
    }
    return shape_text(t->rank, place);
}

/* For ids of which `bad` is the place of the first that is not in 0..limit - 1; -1: none. */
static inline bool check_ids_fit(const char *op, const sb_tensor *ids, int64_t bad, int64_t limit)
{
    return bad < 0 || sb_fail("%s: id %lld at %s of ids %s is not in 0..%lld", op,
                              (long long)sb_tensor_get(ids, bad), place_text(ids, bad).text,
                              tensor_shape(ids).text, (long long)limit - 1);
}

#endif
