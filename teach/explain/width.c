#include "teach/explain/width.h"
#include "autograd/tape.h"
#include "ops/ops.h"
#include "teach/explain/row.h"
#include "tensor/memory.h"
#include <math.h>

/* The variance of the mean over `by` of n groups of numbers, which lie `step` and `apart`. */
static double variance_of_means(const double *x, int n, int step, int by, int apart)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double mean = 0;
        for (int j = 0; j < by; j++)
            mean += x[i * step + j * apart] / by;
        sum += mean;
        squares += mean * mean;
    }
    return (squares - sum * sum / n) / (n - 1) / n;
}

/* The mean of a number of each row, and its standard error: rows that share a query or a group of
   keys are not independent, so the variances between queries and between groups are added. */
static double mean_with_error(const double x[WIDTH_ROWS], double *error)
{
    enum { Q = WIDTH_QUERIES, G = WIDTH_GROUPS };
    double sum = 0;
    for (int r = 0; r < WIDTH_ROWS; r++)
        sum += x[r];
    *error = sqrt(variance_of_means(x, G, Q, Q, 1) + variance_of_means(x, Q, 1, G, Q));
    return sum / WIDTH_ROWS;
}

/* The length of each row of a tensor (..., d). */
static void lengths_of(const sb_tensor *t, int64_t d, double length[WIDTH_ROWS])
{
    const double *x = sb_tensor_data((sb_tensor *)(uintptr_t)t);
    for (int64_t r = 0; r < WIDTH_ROWS; r++) {
        double square = 0;
        for (int64_t i = 0; x && i < d; i++)
            square += x[r * d + i] * x[r * d + i];
        length[r] = sqrt(square);
    }
}

const double width_edges[WIDTH_BINS] = {0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3};

static int bin_of(double norm)
{
    int bin = WIDTH_BINS - 1;
    while (bin > 0 && !(norm >= width_edges[bin]))
        bin--;
    return bin;
}

/* Counts the rows of z (rows, keys) by the size of their Jacobian, backward from each weight; and
   which are saturated, 1 or 0. */
static bool count_norms(sb_tensor *z, int norms[WIDTH_BINS], double saturated[WIDTH_ROWS])
{
    enum { K = WIDTH_KEYS };
    sb_tensor *flat = sb_reshape(sb_detach(z), 3, (const int64_t[]){WIDTH_ROWS, 1, K});
    double one[K * K] = {0};
    for (int i = 0; i < K; i++)
        one[i * K + i] = 1;
    sb_tensor *identity = constant_of(SB_F64, SB_SHAPE(1, K, K), one);
    const int64_t dim[] = {WIDTH_ROWS, K, K};
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_zeros(SB_F64, 3, dim));
    sb_tensor *copies = sb_expand(flat, 3, dim), *each = sb_expand(identity, 3, dim);
    sb_tensor_requires_grad(x);
    bool ok = sb_backward_from(sb_softmax(sb_add(x, copies)), each);
    const double *J = ok ? sb_tensor_data(sb_tensor_grad(x)) : NULL;
    for (int64_t r = 0; J && r < WIDTH_ROWS; r++) {
        double square = 0;
        for (int i = 0; i < K * K; i++)
            square += J[r * K * K + i] * J[r * K * K + i];
        const int bin = bin_of(sqrt(square));
        norms[bin]++;
        saturated[r] = bin < WIDTH_SATURATED_BINS;
    }
    return sb_tape_end(&tape) && J;
}

static double mean_of(sb_tensor *x)
{
    return sb_tensor_value(sb_mean(x, SB_ALL, false));
}

bool width_measure(int64_t d, double scale, struct width_measured *m)
{
    enum { Q = WIDTH_QUERIES, G = WIDTH_GROUPS, K = WIDTH_KEYS };
    sb_random random = sb_random_new((uint64_t)d, SB_STREAM_USER);
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *q = normal_numbers(&random, 3, (const int64_t[]){1, Q, d});
    sb_tensor *k = normal_numbers(&random, 3, (const int64_t[]){G, K, d});
    sb_tensor *g = normal_numbers(&random, 3, (const int64_t[]){G, Q, K});
    sb_tensor_requires_grad(q);
    sb_tensor *each = sb_keep(sb_expand(q, 3, (const int64_t[]){G, Q, d})); /* a row its own q */
    sb_tensor *z = sb_keep(sb_scale(sb_matmul_nt(each, k), scale));
    sb_tensor *loss = sb_sum(sb_multiply(sb_softmax(z), g), SB_ALL, false);
    bool ok = loss != NULL;
    if (ok) {
        *m = (struct width_measured){.variance =
                                         mean_of(sb_multiply(z, z)) - mean_of(z) * mean_of(z)};
        m->squared_slope = scale * scale * (double)d * mean_of(sb_multiply(k, k));
        double row[WIDTH_ROWS] = {0};
        ok = count_norms(z, m->norms, row);
        m->saturated = mean_with_error(row, &m->saturated_error);
        ok = ok && sb_backward(loss);
        if (ok)
            lengths_of(sb_tensor_grad(each), d, row);
        m->gradient = mean_with_error(row, &m->gradient_error);
    }
    return sb_tape_end(&tape) && ok;
}
