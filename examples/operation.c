/*
 * An operation of your own and the check of its gradient: soft-capping (Gemma Team 2024) keeps
 * attention scores between -cap and cap.
 *
 *     y = cap tanh(x / cap)        dx = dy (1 - (y / cap)^2)
 */
#include <math.h>
#include <softback/softback.h>
#include <stdio.h>

/* What forward and backward need apart from tensors; the node holds a copy. */
struct options {
    double cap;
};

/* Adds to dx. Make a mistake in the last line, such as 2 dy, and the check names it. */
static bool softcap_backward(sb_node *node)
{
    const double cap = ((const struct options *)sb_node_options(node))->cap;
    const double *y = sb_tensor_data(sb_node_result(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    sb_tensor *wanted = sb_node_dx(node, 0);
    double *dx = wanted ? sb_tensor_data(wanted) : NULL;
    for (int64_t i = 0; dx && i < sb_tensor_size(wanted); i++)
        dx[i] += dy[i] * (1 - (y[i] / cap) * (y[i] / cap));
    return true;
}

static const sb_operation softcap_operation = {
    .name = "softcap", .inputs = "x", .backward = softcap_backward};

/* x (M, N) of f64 -> y (M, N). If an argument is NULL, softback keeps the first message. */
static sb_tensor *softcap(sb_tensor *x, double cap)
{
    if (x && (sb_tensor_rank(x) != 2 || sb_tensor_dtype(x) != SB_F64))
        return sb_fail("softcap: x is %s of rank %d, expected f64 of rank 2",
                       sb_dtype_name(sb_tensor_dtype(x)), sb_tensor_rank(x));
    const struct options options = {cap};
    sb_node *node = sb_node_new(&softcap_operation, 1, &x, 1, &options, sizeof options);
    sb_tensor *y = sb_node_output(node, SB_F64, SB_SHAPE(sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)));
    const double *from = sb_tensor_data(x);
    double *to = sb_tensor_data(y);
    for (int64_t i = 0; from && to && i < sb_tensor_size(y); i++)
        to[i] = cap * tanh(from[i] / cap);
    return y;
}

/* The function to check: attention weights from capped scores, softmax(softcap(q k')). */
static sb_tensor *capped_weights(void *cap, sb_tensor *const x[])
{
    return sb_softmax(softcap(sb_matmul_nt(x[0], x[1]), *(double *)cap));
}

static sb_tensor *random_matrix(int64_t rows, int64_t columns, sb_random *random)
{
    sb_tensor *x = sb_tensor_zeros(SB_F64, SB_SHAPE(rows, columns));
    for (int64_t i = 0; i < sb_tensor_size(x); i++)
        sb_tensor_set(x, i, sb_random_normal(random));
    return sb_tensor_requires_grad(x);
}

int main(void)
{
    sb_random random = sb_random_new(1, SB_STREAM_USER);
    sb_tensor *x[] = {random_matrix(3, 4, &random), random_matrix(5, 4, &random)};
    double cap = 2;
    sb_gradcheck_result result;
    const bool right = sb_gradcheck(capped_weights, &cap, x, 2, NULL, &result);
    if (right)
        printf("softcap: backward gives %.9f where the difference is %.9f\n", result.backward,
               result.difference);
    else
        puts(sb_error());
    sb_tensor_release(x[1]);
    sb_tensor_release(x[0]);
    return right ? 0 : 1;
}
