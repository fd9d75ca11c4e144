#include "teach/explain/row.h"
#include "autograd/tape.h"
#include "ops/ops.h"
#include "tensor/mathematics.h"

struct row row_of(int n, const double s[])
{
    struct row row = {.n = n, .temperature = 1};
    for (int i = 0; i < n; i++) {
        row.s[i] = s[i];
        row.kept[i] = true;
    }
    return row;
}

/* The softmax of x (rows, n), of which all rows are masked alike. */
static sb_tensor *softmax_of(const struct row *row, sb_tensor *x)
{
    double kept[EXPLAIN_NUMBERS];
    for (int i = 0; i < row->n; i++)
        kept[i] = row->kept[i];
    sb_tensor *allowed = sb_tape_own(sb_tensor_from_doubles(SB_BOOL, SB_SHAPE(row->n), kept));
    return sb_masked_softmax(x, sb_mask_allow(allowed), row->temperature);
}

bool row_forward(const struct row *row, double a[])
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(1, row->n), row->s));
    sb_tensor *y = softmax_of(row, x);
    bool ok = y && sb_tensor_read(y, a);
    return sb_tape_end(&tape) && ok;
}

/* Backward from m upstream gradients (m, n), each through a row of its own. */
static bool backward(const struct row *row, int m, const double g[], double dx[])
{
    double s[EXPLAIN_NUMBERS * EXPLAIN_NUMBERS];
    for (int i = 0; i < m * row->n; i++)
        s[i] = row->s[i % row->n];
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *x = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(m, row->n), s));
    sb_tensor *dy = sb_tape_own(sb_tensor_from_doubles(SB_F64, SB_SHAPE(m, row->n), g));
    bool ok = sb_tensor_requires_grad(x) && sb_backward_from(softmax_of(row, x), dy) &&
              sb_tensor_read(sb_tensor_grad(x), dx);
    return sb_tape_end(&tape) && ok;
}

bool row_backward(const struct row *row, const double g[], double ds[])
{
    return backward(row, 1, g, ds);
}

bool row_jacobian(const struct row *row, double J[][EXPLAIN_NUMBERS])
{
    double one[EXPLAIN_NUMBERS * EXPLAIN_NUMBERS] = {0}, dx[EXPLAIN_NUMBERS * EXPLAIN_NUMBERS];
    int n = row->n;
    for (int i = 0; i < n; i++)
        one[i * n + i] = 1;
    bool ok = backward(row, n, one, dx);
    for (int i = 0; ok && i < n * n; i++)
        J[i / n][i % n] = dx[i];
    return ok;
}

bool row_difference(const struct row *row, const double g[], int j, double *difference)
{
    const double h = 1e-5, rounding = 1e-10;
    double plus[EXPLAIN_NUMBERS], minus[EXPLAIN_NUMBERS];
    struct row moved = *row;
    moved.s[j] = row->s[j] + h;
    bool ok = row_forward(&moved, plus);
    moved.s[j] = row->s[j] - h;
    ok = ok && row_forward(&moved, minus);
    *difference = ok ? (row_dot(row->n, g, plus) - row_dot(row->n, g, minus)) / (2 * h) : 0;
    if (fabs(*difference) < rounding)
        *difference = 0;
    return ok;
}

double row_norm(int n, double J[][EXPLAIN_NUMBERS])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += row_dot(n, J[i], J[i]);
    return sqrt(sum);
}

double row_entropy(int n, const double a[])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum -= a[i] > 0 ? a[i] * math_log(a[i]) : 0;
    return sum;
}

double row_sum(int n, const double x[])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

double row_dot(int n, const double x[], const double y[])
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}
