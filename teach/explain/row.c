#include "teach/explain/row.h"
#include "autograd/tape.h"
#include "ops/ops.h"
#include "tensor/mathematics.h"
#include <stdio.h>

struct row row_of(int n, const double s[])
{
    struct row row = {.n = n, .temperature = 1};
    for (int i = 0; i < n; i++) {
        row.s[i] = s[i];
        row.kept[i] = true;
    }
    return row;
}

struct row row_of_options(const struct explain_options *o)
{
    static const double own_scores[] = {2, 1, 0.1, -1};
    struct numbers s = list_or(&o->list[SCORES], 4, own_scores);
    struct row row = row_of(s.count, s.value);
    for (int i = 0; i < o->list[KEPT].count; i++)
        row.kept[i] = o->list[KEPT].value[i] != 0;
    row.temperature = o->temperature > 0 ? o->temperature : 1;
    return row;
}

bool row_check(const struct explain_options *o)
{
    return o->list[SCORES].count != 1 ||
           sb_fail("--scores: there is 1 number; a softmax needs at least 2");
}

void row_table(struct page *page, const char *name, const char *columns, int n)
{
    char all[200];
    int used = snprintf(all, sizeof all, "%s", columns);
    for (int j = 0; j < n; j++)
        used += snprintf(all + used, sizeof all - (size_t)used, " | by s_%d .4", j);
    page_table(page, name, all);
}

void row_cells(struct page *page, int given, const struct page_cell cells[], int n,
               const double numbers[])
{
    struct page_cell all[PAGE_COLUMNS];
    for (int i = 0; i < given + n; i++)
        all[i] = i < given ? cells[i] : cell_of(numbers[i - given]);
    page_row(page, all);
}

sb_tensor *constant_of(sb_dtype dtype, int rank, const int64_t dim[], const double values[])
{
    return sb_tape_own(sb_tensor_from_doubles(dtype, rank, dim, values));
}

sb_tensor *variable_of(sb_dtype dtype, int rank, const int64_t dim[], const double values[])
{
    return sb_tensor_requires_grad(constant_of(dtype, rank, dim, values));
}

sb_tensor *normal_numbers(sb_random *random, int rank, const int64_t dim[])
{
    sb_tensor *t = sb_tape_own(sb_tensor_zeros(SB_F64, rank, dim));
    for (int64_t i = 0; t && i < sb_tensor_size(t); i++)
        sb_tensor_set(t, i, sb_random_normal(random));
    return t;
}

sb_tensor *naive_softmax(sb_tensor *x)
{
    sb_tensor *e = sb_exp(sb_subtract(x, sb_detach(sb_max(x, -1, true))));
    return sb_divide(e, sb_sum(e, -1, true));
}

/* The softmax of x (rows, n), of which all rows are masked alike. */
static sb_tensor *softmax_of(const struct row *row, sb_tensor *x)
{
    double kept[EXPLAIN_NUMBERS];
    for (int i = 0; i < row->n; i++)
        kept[i] = row->kept[i];
    sb_mask *mask = sb_mask_allow(constant_of(SB_BOOL, SB_SHAPE(row->n), kept));
    return sb_masked_softmax(x, mask, row->temperature);
}

bool row_forward(const struct row *row, double a[])
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    sb_tensor *y = softmax_of(row, constant_of(SB_F64, SB_SHAPE(1, row->n), row->s));
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
    sb_tensor *x = variable_of(SB_F64, SB_SHAPE(m, row->n), s);
    sb_tensor *dy = constant_of(SB_F64, SB_SHAPE(m, row->n), g);
    bool ok = sb_backward_from(softmax_of(row, x), dy) && sb_tensor_read(sb_tensor_grad(x), dx);
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

double row_sum(int64_t n, const double x[])
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

double row_mean(int n, const double x[], double *error)
{
    const double mean = row_sum(n, x) / n;
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *error = sqrt(squares / (n - 1) / n);
    return mean;
}

double row_dot(int64_t n, const double x[], const double y[])
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* ---- random queries and keys ---- */

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
    *error = sqrt(variance_of_means(x, G, Q, Q, 1) + variance_of_means(x, Q, 1, G, Q));
    return row_sum(WIDTH_ROWS, x) / WIDTH_ROWS;
}

/* The length of each row of a tensor (..., d). */
static void lengths_of(const sb_tensor *t, int64_t d, double length[WIDTH_ROWS])
{
    const double *x = sb_tensor_data((sb_tensor *)(uintptr_t)t);
    for (int64_t r = 0; r < WIDTH_ROWS; r++)
        length[r] = x ? sqrt(row_dot(d, x + r * d, x + r * d)) : 0;
}

const double width_edges[WIDTH_BINS] = {0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3};

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
        const double norm = sqrt(row_dot(K * K, J + r * K * K, J + r * K * K));
        int bin = WIDTH_BINS - 1;
        while (bin > 0 && !(norm >= width_edges[bin]))
            bin--;
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
