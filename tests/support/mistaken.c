#include "tests/support/mistaken.h"

struct square {
    double scale;
    enum mistake mistake;
};

/* y = scale x^2 */
static bool square_backward(sb_node *node)
{
    const struct square *o = sb_node_options(node);
    const double *x = sb_tensor_data(sb_node_input(node, 0));
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    double *dx = sb_tensor_data(sb_node_dx(node, 0));
    for (int64_t i = 0; i < sb_tensor_size(sb_node_input(node, 0)); i++) {
        double right = 2 * o->scale * x[i] * dy[i];
        bool fresh = o->mistake == FRESH_ONLY || sb_node_fresh(node, 0);
        double part[] = {[RIGHT] = right,
                         [ASSIGNED] = right,
                         [FRESH_ONLY] = right,
                         [DOUBLED] = 2 * right,
                         [HALVED] = right / 2,
                         [HALF_MORE] = 1.5 * right,
                         [NEGATED] = -right,
                         [ZERO] = 0,
                         [ONE_NAN] = i == 1 ? NAN : right,
                         [ONE_WRONG] = right + (i == 2) * 1e-3};
        dx[i] = (o->mistake == ASSIGNED || fresh ? 0 : dx[i]) + part[o->mistake];
    }
    return true;
}

static const sb_operation square_operation = {"square", "x", square_backward, false, false};
static const sb_operation fresh_square_operation = {"square", "x", square_backward, true, false};

sb_tensor *square(sb_tensor *x, double scale, enum mistake mistake)
{
    struct square o = {scale, mistake};
    sb_node *node = sb_node_new(mistake == FRESH_ONLY ? &fresh_square_operation : &square_operation,
                                1, &x, 1, &o, sizeof o);
    sb_tensor *y = node ? sb_node_output(node, x->dtype, x->rank, x->dim) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++)
        ((double *)y->data)[i] = scale * ((double *)x->data)[i] * ((double *)x->data)[i];
    return y;
}

/* y = a + b, where b (one row, one column or one number) is repeated. */
static bool sum_backward(sb_node *node)
{
    enum sum_mistake mistake = *(const enum sum_mistake *)sb_node_options(node);
    sb_tensor *a = sb_node_input(node, 0), *b = sb_node_input(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    sb_tensor *da = sb_node_dx(node, 0), *db = sb_node_dx(node, 1);
    int64_t stride[2], R = a->dim[0], C = a->dim[1];
    shape_strides(b->rank, b->dim, 2, a->dim, stride);
    for (int64_t i = 0; da && i < R * C; i++)
        ((double *)da->data)[i] += dy[i];
    for (int64_t i = 0; db && i < R * C; i++) {
        int64_t r = i / C, c = i % C;
        bool first = r * (stride[0] == 0) + c * (stride[1] == 0) == 0;
        bool last = (stride[0] || r == R - 1) && (stride[1] || c == C - 1);
        if (mistake == SUMMED || (mistake == FIRST_ONLY && first) || (mistake == LAST_ONLY && last))
            ((double *)db->data)[r * stride[0] + c * stride[1]] += dy[i];
    }
    return true;
}

static const sb_operation sum_operation = {"sum", "a b", sum_backward, false, false};

sb_tensor *sum(sb_tensor *a, sb_tensor *b, enum sum_mistake mistake)
{
    sb_node *node =
        sb_node_new(&sum_operation, 2, (sb_tensor *[]){a, b}, 1, &mistake, sizeof mistake);
    sb_tensor *y = node ? sb_node_output(node, a->dtype, a->rank, a->dim) : NULL;
    int64_t stride[2];
    shape_strides(b->rank, b->dim, a->rank, a->dim, stride);
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        int64_t r = i / a->dim[1], c = i % a->dim[1];
        ((double *)y->data)[i] =
            ((double *)a->data)[i] + ((double *)b->data)[r * stride[0] + c * stride[1]];
    }
    return y;
}

/* y = a b for a (M, K), b (K, N) */
static bool product_backward(sb_node *node)
{
    enum product_mistake mistake = *(const enum product_mistake *)sb_node_options(node);
    sb_tensor *a = sb_node_input(node, 0), *b = sb_node_input(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0)), *A = a->data, *B = b->data;
    double *da = sb_tensor_data(sb_node_dx(node, 0)), *db = sb_tensor_data(sb_node_dx(node, 1));
    int64_t M = a->dim[0], K = a->dim[1], N = b->dim[1];
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t n = 0; n < N; n++) {
                int64_t place = mistake == GRADIENT_TRANSPOSED ? k * M + m : m * K + k;
                da[place] +=
                    dy[m * N + n] * (mistake == PRODUCT_TRANSPOSED ? B[n * N + k] : B[k * N + n]);
                db[k * N + n] += A[m * K + k] * dy[m * N + n];
            }
    return true;
}

static const sb_operation product_operation = {"product", "a b", product_backward, false, false};

static sb_tensor *product(sb_tensor *a, sb_tensor *b, enum product_mistake mistake)
{
    sb_node *node =
        sb_node_new(&product_operation, 2, (sb_tensor *[]){a, b}, 1, &mistake, sizeof mistake);
    int64_t M = a->dim[0], K = a->dim[1], N = b->dim[1];
    sb_tensor *y = node ? sb_node_output(node, SB_F64, SB_SHAPE(M, N)) : NULL;
    for (int64_t i = 0; i < sb_tensor_size(y); i++) {
        double dot = 0;
        for (int64_t k = 0; k < K; k++)
            dot += ((double *)a->data)[i / N * K + k] * ((double *)b->data)[k * N + i % N];
        ((double *)y->data)[i] = dot;
    }
    return y;
}

sb_tensor *f_square(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return square(x[0], how->scale, (enum mistake)how->mistake);
}

sb_tensor *f_square_twice(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    sb_tensor *a = square(x[0], 1, (enum mistake)how->mistake);
    sb_tensor *b = square(x[0], 3, (enum mistake)how->mistake);
    return a && b ? sum(a, b, SUMMED) : NULL;
}

sb_tensor *f_sum(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return sum(x[0], x[1], (enum sum_mistake)how->mistake);
}

sb_tensor *f_product(void *how_, sb_tensor *const x[])
{
    const struct how *how = how_;
    return product(x[0], x[1], (enum product_mistake)how->mistake);
}

sb_gradcheck_result check(sb_function f, double scale, int mistake, int n, sb_tensor *const x[])
{
    struct how how = {scale, mistake};
    sb_gradcheck_result result;
    bool ok = sb_gradcheck(f, &how, x, n, NULL, &result);
    cr_expect(ok == result.ok);
    return result;
}

sb_gradcheck_result check_square(double scale, enum mistake mistake)
{
    sb_tensor *x = test_leaf(SB_F64, 3, SB_SHAPE(2, 3));
    sb_gradcheck_result result = check(f_square, scale, mistake, 1, &x);
    return result;
}
