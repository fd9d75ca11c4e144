/*
 * A program outside the library with its own operation, as a user would write one:
 * y = softplus(x) = ln(1 + e^x), dx = dy sigmoid(x).
 *
 * It checks the gradient, then makes one element wrong on purpose; the check must name that
 * element. Exits with 0 only if both results are as expected.
 */
#include <math.h>
#include <softback/softback.h>
#include <stdio.h>

enum { SPOILED = 4 };

/* A context for backward: which element it gets wrong, or -1. */
struct options {
    int64_t wrong;
};

static bool backward(sb_node *node)
{
    const struct options *options = sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    const double *x = sb_tensor_data(sb_node_input(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *to = sb_tensor_data(dx);
    for (int64_t i = 0; i < sb_tensor_size(dx); i++)
        to[i] += dy[i] / (1 + exp(-x[i])) * (i == options->wrong ? 1.5 : 1);
    return true;
}

static const sb_operation softplus_operation = {
    .name = "softplus", .inputs = "x", .backward = backward};

static sb_tensor *softplus(sb_tensor *x, int64_t wrong)
{
    struct options options = {wrong};
    sb_node *node = sb_node_new(&softplus_operation, 1, &x, 1, &options, sizeof options);
    if (!node)
        return NULL;
    int64_t dim[] = {sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)};
    sb_tensor *y = sb_node_output(node, sb_tensor_dtype(x), 2, dim);
    double *to = sb_tensor_data(y);
    const double *from = sb_tensor_data(x);
    for (int64_t i = 0; to && from && i < sb_tensor_size(y); i++)
        to[i] = log1p(exp(from[i]));
    return y;
}

static sb_tensor *function(void *wrong, sb_tensor *const x[])
{
    return softplus(x[0], *(const int64_t *)wrong);
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
    bool right = sb_gradcheck(function, &wrong, &x, 1, NULL, &result);
    printf("softplus: the gradient is %s, error %.1e%s%s\n", right ? "right" : "wrong",
           result.error, right ? "" : ": ", right ? "" : sb_error());
    wrong = SPOILED;
    bool noticed = !sb_gradcheck(function, &wrong, &x, 1, NULL, &result);
    printf("softplus with element %d spoiled: %s\n", SPOILED, noticed ? sb_error() : "not noticed");
    bool named = noticed && result.input == 0 && result.index == SPOILED;
    printf("the element named is %lld: %s\n", noticed ? (long long)result.index : -1LL,
           named ? "right" : "wrong");
    sb_tensor_release(x);
    return right && named ? 0 : 1;
}
