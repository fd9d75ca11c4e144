/*
 * A program outside the library with its own operation, as a user would write one:
 * y = softplus(x) = ln(1 + e^x), dx = dy sigmoid(x).
 *
 * Its loops are in softplus_loops.h, compiled twice: for double, and for sb_dual, numbers with a
 * tangent. So the gradient check is exact for it, and so are sb_jvp and sb_hvp.
 *
 * The program checks the gradient, then makes one element wrong on purpose, by so little that
 * central differences would not notice; the check must name that element. Exits with 0 only if both
 * results are as expected.
 */
#include <math.h>
#include <softback/softback.h>
#include <stdio.h>

enum { SPOILED = 4 };

/* A context for backward: which element it gets wrong, or -1. */
struct options {
    int64_t wrong;
};

#define real double
#define NAME(function) function##_double
#define VALUE(x) (x)
#define APPLY(x, f, slope) (f)
#include "softplus_loops.h"

#define real sb_dual
#define NAME(function) function##_dual
#define VALUE(x) sb_dual_value(x)
#define APPLY(x, f, slope) sb_dual_apply(x, f, slope)
#include "softplus_loops.h"

static bool is_dual(const sb_tensor *t)
{
    return sb_tensor_dtype(t) == SB_DUAL;
}

static bool backward(sb_node *node)
{
    const struct options *options = sb_node_options(node);
    sb_tensor *x = sb_node_input(node, 0), *dy = sb_node_dy(node, 0), *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    if (is_dual(x))
        backward_dual(sb_tensor_size(x), sb_tensor_dual_data(x), sb_tensor_dual_data(dy),
                      sb_tensor_dual_data(dx), options->wrong);
    else
        backward_double(sb_tensor_size(x), sb_tensor_data(x), sb_tensor_data(dy),
                        sb_tensor_data(dx), options->wrong);
    return true;
}

static const sb_operation softplus_operation = {
    .name = "softplus", .inputs = "x", .backward = backward, .dual = true};

static sb_tensor *softplus(sb_tensor *x, int64_t wrong)
{
    struct options options = {wrong};
    sb_node *node = sb_node_new(&softplus_operation, 1, &x, 1, &options, sizeof options);
    if (!node)
        return NULL;
    x = sb_node_input(node, 0); /* for derivatives, the argument's copy with tangents */
    int64_t dim[] = {sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)};
    sb_tensor *y = sb_node_output(node, sb_tensor_dtype(x), 2, dim);
    if (y && is_dual(x))
        forward_dual(sb_tensor_size(y), sb_tensor_dual_data(x), sb_tensor_dual_data(y));
    else if (y)
        forward_double(sb_tensor_size(y), sb_tensor_data(x), sb_tensor_data(y));
    return y;
}

static sb_tensor *function(void *wrong, sb_tensor *const x[])
{
    return softplus(x[0], *(const int64_t *)wrong);
}

/* H v of the sum of softplus for v = 1: sigmoid'(x) = s (1 - s). */
static sb_tensor *total(void *wrong, sb_tensor *const x[])
{
    return sb_sum(function(wrong, x), SB_ALL, false);
}

static bool second_derivatives_are_right(sb_tensor *x)
{
    int64_t wrong = -1;
    sb_tensor *ones = sb_tensor_full(SB_F64, SB_SHAPE(2, 3), 1), *hv = NULL;
    bool right = ones && sb_hvp(total, &wrong, &x, &ones, 1, &hv);
    double error = 0;
    for (int i = 0; right && i < 6; i++) {
        const double s = 1 / (1 + exp(-sb_tensor_get(x, i)));
        error = fmax(error, fabs(sb_tensor_get(hv, i) - s * (1 - s)));
    }
    printf("its second derivatives: error %.0e%s%s\n", error, right ? "" : ": ",
           right ? "" : sb_error());
    sb_tensor_release(ones);
    sb_tensor_release(hv);
    return right && error < 1e-15;
}

int main(void)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    double values[6];
    for (int i = 0; i < 6; i++)
        values[i] = 4 * sb_random_uniform(&random) - 2;
    sb_tensor *x = sb_tensor_requires_grad(sb_tensor_from_doubles(SB_F64, SB_SHAPE(2, 3), values));
    if (!x) {
        printf("no input: %s\n", sb_error());
        return 1;
    }
    sb_gradcheck_result result;
    int64_t wrong = -1;
    bool right =
        sb_gradcheck(function, &wrong, &x, 1, NULL, &result) && result.method == SB_GRADCHECK_EXACT;
    printf("softplus: the gradient is %s, error %.1e%s%s\n", right ? "right" : "wrong",
           result.error, right ? "" : ": ", right ? "" : sb_error());
    right = second_derivatives_are_right(x) && right;
    wrong = SPOILED;
    bool noticed = !sb_gradcheck(function, &wrong, &x, 1, NULL, &result);
    printf("softplus with element %d spoiled: %s\n", SPOILED, noticed ? sb_error() : "not noticed");
    bool named = noticed && result.input == 0 && result.index == SPOILED;
    printf("the element named is %lld: %s\n", noticed ? (long long)result.index : -1LL,
           named ? "right" : "wrong");
    const sb_gradcheck_options differences = {.method = SB_GRADCHECK_DIFFERENCES};
    printf("by differences: %s\n", sb_gradcheck(function, &wrong, &x, 1, &differences, &result)
                                       ? "not noticed"
                                       : "noticed");
    sb_tensor_release(x);
    return right && named ? 0 : 1;
}
