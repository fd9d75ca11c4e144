/* One row of scores, through the library's softmax and back, in float64; and many random rows. */
#ifndef SOFTBACK_TEACH_EXPLAIN_ROW_H
#define SOFTBACK_TEACH_EXPLAIN_ROW_H

#include "teach/explain/topic.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

struct row {
    int n;
    double s[EXPLAIN_NUMBERS];
    bool kept[EXPLAIN_NUMBERS];
    double temperature;
};

/* All kept, temperature 1. */
struct row row_of(int n, const double s[]);

/* The row of the options: their scores, kept and temperature; without scores one of four. */
struct row row_of_options(const struct explain_options *options);
/* Fails when --scores has a single number. */
bool row_check(const struct explain_options *options);

/* Begins a table with the columns given and one for each score, "by s_0"; and adds a row to it, the
   given cells and then n <= 8 numbers. */
void row_table(struct page *page, const char *name, const char *columns, int n);
void row_cells(struct page *page, int given, const struct page_cell cells[], int n,
               const double numbers[]);

/* Tensors owned by the tape: of these numbers, without and with a gradient, and of normal numbers
   in float64. */
sb_tensor *constant_of(sb_dtype dtype, int rank, const int64_t dim[], const double values[]);
sb_tensor *variable_of(sb_dtype dtype, int rank, const int64_t dim[], const double values[]);
sb_tensor *normal_numbers(sb_random *random, int rank, const int64_t dim[]);

/* Deliberately naive: the softmax of a textbook, exp over its sum, which ignores fully masked
   rows. */
sb_tensor *naive_softmax(sb_tensor *x);

/* a = softmax(s / T) over what is kept. */
bool row_forward(const struct row *row, double a[]);
/* The gradient ds of sum_i g_i a_i, by the library's backward. */
bool row_backward(const struct row *row, const double g[], double ds[]);
/* J[i][j] = da_i / ds_j: backward from each a_i alone. */
bool row_jacobian(const struct row *row, double J[][EXPLAIN_NUMBERS]);
/* The central difference of sum_i g_i a_i by s_j; 0 where it is below its own rounding. */
bool row_difference(const struct row *row, const double g[], int j, double *difference);

/* Frobenius norm of J. */
double row_norm(int n, double J[][EXPLAIN_NUMBERS]);
/* -sum_i a_i ln a_i. */
double row_entropy(int n, const double a[]);

double row_sum(int64_t n, const double x[]);
/* The mean of n independent numbers, and its standard error. */
double row_mean(int n, const double x[], double *error);
double row_dot(int64_t n, const double x[], const double y[]);

/* ---- rows of attention of random queries to random keys: how much of a gradient passes ---- */

enum {
    WIDTH_QUERIES = 48,
    WIDTH_GROUPS = 48,
    WIDTH_KEYS = 10,
    WIDTH_ROWS = WIDTH_QUERIES * WIDTH_GROUPS,
    WIDTH_BINS = 9,
    WIDTH_SATURATED_BINS = 5, /* the first ones hold the saturated rows */
};

struct width_measured {
    double variance;       /* of the scores z = scale q k' */
    double squared_slope;  /* mean |dz/dq|^2 */
    int norms[WIDTH_BINS]; /* of rows whose ||J|| lies from one of width_edges up to the next */
    double saturated;      /* the share of rows with ||J|| < 0.01 */
    double gradient;       /* mean |dq| of a row, for normal gradients of its weights */
    double saturated_error, gradient_error; /* standard errors of these two */
};

/* Where bins begin: 0, and then half decades from 1e-4 to 0.3; no ||J|| is above 1. */
extern const double width_edges[WIDTH_BINS];

/* Every query with every group of keys, all of d normal numbers, fixed by d. */
bool width_measure(int64_t d, double scale, struct width_measured *measured);

#endif
