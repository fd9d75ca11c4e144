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

/*
 * One loop each for forward and backward, compiled twice: for double, and for sb_dual, a number
 * with a tangent, so that the check below is exact and sb_hvp works. + - * / are C's. A function of
 * one variable is APPLY(x, its value, its derivative) at VALUE(x).
 *
 * Backward adds to dx. Make a mistake in its last line, such as 2 * dy[i], and the check names it.
 */
#define LOOPS(real, VALUE, APPLY)                                                                  \
    static void forward_##real(int64_t n, double cap, const real *x, real *y)                      \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double t = tanh(VALUE(x[i]) / cap);                                              \
            y[i] = APPLY(x[i], cap * t, 1 - t * t);                                                \
        }                                                                                          \
    }                                                                                              \
    static void backward_##real(int64_t n, double cap, const real *y, const real *dy, real *dx)    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] += dy[i] * (1 - (y[i] / cap) * (y[i] / cap));                                    \
    }

#define VALUE_OF_DOUBLE(x) (x)
#define APPLY_TO_DOUBLE(x, f, slope) (f)
LOOPS(double, VALUE_OF_DOUBLE, APPLY_TO_DOUBLE)
LOOPS(sb_dual, sb_dual_value, sb_dual_apply)

static bool softcap_backward(sb_node *node)
{
    const double cap = ((const struct options *)sb_node_options(node))->cap;
    sb_tensor *y = sb_node_result(node, 0), *dy = sb_node_dy(node, 0), *dx = sb_node_dx(node, 0);
    if (dx && sb_tensor_dtype(dx) == SB_DUAL)
        backward_sb_dual(sb_tensor_size(dx), cap, sb_tensor_dual_data(y), sb_tensor_dual_data(dy),
                         sb_tensor_dual_data(dx));
    else if (dx)
        backward_double(sb_tensor_size(dx), cap, sb_tensor_data(y), sb_tensor_data(dy),
                        sb_tensor_data(dx));
    return true;
}

static const sb_operation softcap_operation = {
    .name = "softcap", .inputs = "x", .backward = softcap_backward, .dual = true};

/* x (M, N) of f64 -> y (M, N). If an argument is NULL, softback keeps the first message. */
static sb_tensor *softcap(sb_tensor *argument, double cap)
{
    const struct options options = {cap};
    sb_node *node = sb_node_new(&softcap_operation, 1, &argument, 1, &options, sizeof options);
    if (!node)
        return NULL;
    sb_tensor *x = sb_node_input(node, 0); /* for exact derivatives, a copy with tangents */
    const sb_dtype dtype = sb_tensor_dtype(x);
    if (sb_tensor_rank(x) != 2 || (dtype != SB_F64 && dtype != SB_DUAL))
        return sb_fail("softcap: x is %s of rank %d, expected f64 of rank 2", sb_dtype_name(dtype),
                       sb_tensor_rank(x));
    sb_tensor *y = sb_node_output(node, dtype, SB_SHAPE(sb_tensor_dim(x, 0), sb_tensor_dim(x, 1)));
    if (y && dtype == SB_DUAL)
        forward_sb_dual(sb_tensor_size(y), cap, sb_tensor_dual_data(x), sb_tensor_dual_data(y));
    else if (y)
        forward_double(sb_tensor_size(y), cap, sb_tensor_data(x), sb_tensor_data(y));
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
        printf("softcap: backward agrees with %s derivatives, error %.1e\n",
               result.method == SB_GRADCHECK_EXACT ? "exact" : "approximate", result.error);
    else
        puts(sb_error());
    sb_tensor_release(x[1]);
    sb_tensor_release(x[0]);
    return right ? 0 : 1;
}
