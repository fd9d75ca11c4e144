#include "teach/explain/wrong_softmax.h"
#include "autograd/operation.h"
#include "ops/ops.h"

static void row_backward_by(enum wrong wrong, int64_t C, const double *a, const double *g,
                            double *dx)
{
    double average = 0, mean = 0;
    for (int64_t c = 0; c < C; c++) {
        average += a[c] * g[c];
        mean += a[c] * (1 - a[c]) * g[c] / (double)C;
    }
    for (int64_t c = 0; c < C; c++) {
        double diagonal = a[c] * (1 - a[c]) * g[c];
        if (wrong == WRONG_NONE)
            dx[c] += a[c] * (g[c] - average);
        else if (wrong != WRONG_ZERO)
            dx[c] += wrong == WRONG_CENTRED ? diagonal - mean : diagonal;
    }
}

static bool backward(sb_node *node)
{
    const enum wrong *wrong = sb_node_options(node);
    sb_tensor *dx = sb_node_dx(node, 0);
    if (!dx)
        return true;
    const double *a = sb_tensor_data(sb_node_result(node, 0));
    const double *g = sb_tensor_data(sb_node_dy(node, 0));
    double *to = sb_tensor_data(dx);
    int64_t C = sb_tensor_dim(dx, -1);
    for (int64_t i = 0; a && g && to && i < sb_tensor_size(dx); i += C)
        row_backward_by(*wrong, C, a + i, g + i, to + i);
    return a && g && to;
}

static const sb_operation operation = {"wrong_softmax", "x", backward, false, false};

sb_tensor *wrong_softmax(sb_tensor *x, enum wrong wrong)
{
    sb_node *node = sb_node_new(&operation, 1, &x, 1, &wrong, sizeof wrong);
    int64_t dim[4];
    int rank = sb_tensor_rank(x);
    for (int i = 0; i < rank && i < 4; i++)
        dim[i] = sb_tensor_dim(x, i);
    sb_tensor *y = node ? sb_node_output(node, SB_F64, rank, dim) : NULL;
    double *to = y ? sb_tensor_data(y) : NULL;
    sb_tape tape; /* forward is the library's */
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *right = to ? sb_softmax(x) : NULL;
    bool ok = right && sb_tensor_read(right, to);
    return sb_tape_end(&tape) && ok ? y : NULL;
}

const char *wrong_name(enum wrong wrong)
{
    static const char *const names[WRONGS] = {"a(g - avg): right", "a(1-a)g: the mistake",
                                              "a(1-a)g less its mean", "0: q and k frozen"};
    return names[wrong];
}

/* ---- The gradients of enum wrong, as lesson 4 writes them. ---- */

static void right_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    float average = 0;
    for (int64_t i = 0; i < n; i++)
        average += a[i] * g[i];
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (g[i] - average);
}

static void mistake(int64_t n, const float *a, const float *g, float *ds)
{
    for (int64_t i = 0; i < n; i++)
        ds[i] = a[i] * (1 - a[i]) * g[i];
}

static void centred_mistake(int64_t n, const float *a, const float *g, float *ds)
{
    float mean = 0;
    mistake(n, a, g, ds);
    for (int64_t i = 0; i < n; i++)
        mean += ds[i] / (float)n;
    for (int64_t i = 0; i < n; i++)
        ds[i] -= mean;
}

static void no_gradient(int64_t n, const float *a, const float *g, float *ds)
{
    (void)a, (void)g;
    for (int64_t i = 0; i < n; i++)
        ds[i] = 0;
}

reverse_gradient *const wrong_gradients[WRONGS] = {right_gradient, mistake, centred_mistake,
                                                   no_gradient};
