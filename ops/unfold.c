/* Unfold is composed of slices and a concatenation, on every device. */
#include "ops/call.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/ops.h"
#include "tensor/failure.h"
#include "tensor/memory.h"

static int64_t unfold_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static sb_tensor *unfold_zeros(const sb_tensor *x, int64_t length)
{
    return call_zeros("unfold", x, SB_SHAPE(x->dim[0], length, x->dim[2]));
}

/* `length` positions of x, from -left on: zeros where x has none. */
static sb_tensor *unfold_padded(sb_tensor *x, int64_t left, int64_t length)
{
    const int64_t before = unfold_least(left, length), L = x->dim[1];
    const int64_t kept = unfold_least(L, length - before), after = length - before - kept;
    sb_tensor *part[3];
    int n = 0;
    if (before)
        part[n++] = unfold_zeros(x, before);
    part[n++] = kept < L ? sb_slice(x, 1, 0, kept) : x; /* of none, too: x has a gradient then */
    if (after)
        part[n++] = unfold_zeros(x, after);
    return n == 1 ? part[0] : sb_concatenate(part, n, 1);
}

/*
 * Element k of every window. Position t stride + at of x (B, L, C) is row t + at / stride of
 * x as (B, L / stride, stride C), from column at % stride C on.
 */
static sb_tensor *unfold_element(sb_tensor *x, int64_t stride, int64_t at, int64_t count)
{
    const int64_t C = sb_tensor_dim(x, 2) / stride;
    sb_tensor *y = sb_slice(x, 1, at / stride, count);
    return stride == 1 ? y : sb_slice(y, 2, at % stride * C, C);
}

static sb_tensor *unfold_windows(sb_tensor *x, int64_t width, const sb_unfold_options *o,
                                 int64_t count)
{
    const int64_t rows = count + o->dilation * (width - 1) / o->stride;
    sb_tensor **part = memory_new((size_t)width * sizeof *part);
    if (!part)
        return sb_fail("unfold: out of memory");
    x = unfold_padded(x, o->left, rows * o->stride);
    if (x)
        x = sb_reshape(x, SB_SHAPE(x->dim[0], rows, o->stride * x->dim[2]));
    for (int64_t k = 0; k < width; k++)
        part[k] = unfold_element(x, o->stride, k * o->dilation, count);
    sb_tensor *y = sb_concatenate(part, (int)width, 2);
    memory_free(part);
    return y;
}

static bool unfold_in_range(const char *what, int64_t value, int64_t least)
{
    return (value >= least && value <= 1 << 24) ||
           sb_fail("unfold: %s is %lld, not in %lld..%d", what, (long long)value, (long long)least,
                   1 << 24);
}

sb_tensor *sb_unfold(sb_tensor *x, int64_t width, const sb_unfold_options *options)
{
    sb_unfold_options o = options ? *options : (sb_unfold_options){0};
    o.stride += o.stride == 0;
    o.dilation += o.dilation == 0;
    if (!x)
        return fail_null("unfold", "x");
    if (!tape_need("unfold") || !check_real("unfold", "x", x) ||
        !unfold_in_range("width", width, 1) || !unfold_in_range("stride", o.stride, 1) ||
        !unfold_in_range("dilation", o.dilation, 1) || !unfold_in_range("left", o.left, 0) ||
        !unfold_in_range("right", o.right, 0))
        return NULL;
    if (x->rank != 3)
        return sb_fail("unfold: x is %s; it must be (batch, length, width)", tensor_shape(x).text);
    const int64_t length = x->dim[1] + o.left + o.right, span = o.dilation * (width - 1) + 1;
    if (length < span)
        return sb_fail("unfold: x is %s: with %lld zeros it has %lld positions, fewer than the "
                       "%lld of a window",
                       tensor_shape(x).text, (long long)(o.left + o.right), (long long)length,
                       (long long)span);
    return unfold_windows(x, width, &o, (length - span) / o.stride + 1);
}

EXAMPLE(example_unfold, sb_unfold(x[0], 3, &(sb_unfold_options){.left = 2}))
EXAMPLE(example_unfold_far,
        sb_unfold(x[0], 3, &(sb_unfold_options){.stride = 2, .dilation = 3, .left = 1, .right = 5}))

OPERATION_WITHOUT_KERNELS(unfold, {"unfold", example_unfold, {"1x1x1", "2x4x3", "=3x7x2"}},
                          {"unfold", example_unfold_far, {"1x1x1", "2x4x3", "2x9x2"}});
