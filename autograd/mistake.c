#include "autograd/gradcheck_parts.h"
#include "tensor/memory.h"
#include <math.h>
#include <stdio.h>

static double largest(int64_t n, const double *a)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(a[i]));
    return most;
}

static bool all_finite(int64_t n, const double *a)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(a[i]))
            return false;
    return true;
}

/* Whether a = factor b, up to the tolerance relative to the larger of both and the rounding of
   f. */
static bool fits(const struct gradient *g, const double *a, const double *b, double factor,
                 double tolerance)
{
    double size = fabs(factor);
    double allowed = tolerance * fmax(largest(g->n, a), size * largest(g->n, b));
    for (int64_t i = 0; i < g->n; i++)
        if (!(fabs(a[i] - factor * b[i]) <= allowed + fmax(1, size) * g->rounding[i]))
            return false;
    return true;
}

/* Whether the second backward overwrote the existing gradient instead of adding to it. */
static bool is_assigned(const struct gradient *g, double tolerance)
{
    double allowed = tolerance * largest(g->n, g->before);
    for (int64_t i = 0; i < g->n; i++)
        if (!(fabs(g->before[i] + g->again[i] - g->backward[i]) <= allowed))
            return false;
    return true;
}

static bool is_whole(double factor)
{
    return factor >= 1 && fabs(factor - round(factor)) < 1e-6 * factor;
}

/* The factor between backward and the difference if it is the same for all elements, or 0. */
static double common_factor(const struct gradient *g, double tolerance)
{
    double product = 0, square = 0;
    for (int64_t i = 0; i < g->n; i++) {
        product += g->backward[i] * g->difference[i];
        square += g->difference[i] * g->difference[i];
    }
    double factor = square > 0 ? product / square : 0, size = fabs(factor);
    if (factor == 0 || !fits(g, g->backward, g->difference, factor, tolerance))
        return 0;
    /* a single number is always a multiple of another */
    return g->n > 1 || is_whole(size) || is_whole(1 / size) ? factor : 0;
}

/* What the factor is the number of, if that is likely. */
static const char *name_number(const sb_tensor *x, double factor)
{
    const double row = x->rank > 0 ? (double)x->dim[x->rank - 1] : 1, all = (double)tensor_size(x);
    if (row > 2 && fabs(factor - row) < 1e-6)
        return ", the length of a row: a sum and a mean are confused";
    if (all > 2 && fabs(factor - all) < 1e-6)
        return ", the number of elements: a sum and a mean are confused";
    return ": a factor is lost";
}

static void name_factor(const sb_tensor *x, double factor, char text[MISTAKE_SIZE])
{
    const char *sign = factor < 0 ? " and of the wrong sign" : "";
    double size = fabs(factor);
    if (fabs(size - 1) < 1e-4)
        snprintf(text, MISTAKE_SIZE,
                 "of the right size and the wrong sign everywhere: a sign is lost");
    else
        snprintf(text, MISTAKE_SIZE, "exactly %.3f times too %s%s everywhere%s",
                 size > 1 ? size : 1 / size, size > 1 ? "large" : "small", sign,
                 name_number(x, size > 1 ? size : 1 / size));
}

/* Whether the gradient's last two axes are swapped in memory. */
static bool is_transposed(const struct gradient *g, double tolerance)
{
    const sb_tensor *x = g->x;
    if (x->rank < 2)
        return false;
    int64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1], matrix = rows * columns;
    double allowed = tolerance * fmax(largest(g->n, g->backward), largest(g->n, g->difference));
    for (int64_t i = 0; i < g->n; i++) {
        int64_t place = i % matrix, row = place / columns, column = place % columns;
        int64_t other = i - place + column * rows + row;
        if (!(fabs(g->backward[other] - g->difference[i]) <= allowed + g->rounding[i]))
            return false;
    }
    return true;
}

/* Whether backward differs from the derivative by a constant within each row; *total is the sum of
   these constants, and *size of their sizes. */
static bool is_shifted_by_row(const struct gradient *g, double tolerance, double *total,
                              double *size)
{
    const int64_t C = g->x->rank > 0 ? g->x->dim[g->x->rank - 1] : 1;
    const double allowed =
        tolerance * fmax(largest(g->n, g->backward), largest(g->n, g->difference));
    *total = *size = 0;
    for (int64_t i = 0; i < g->n && C > 2; i++) {
        const int64_t first = i - i % C;
        const double shift = g->backward[i] - g->difference[i];
        const double other = g->backward[first] - g->difference[first];
        if (!(fabs(shift - other) <= 2 * (allowed + g->rounding[i])))
            return false;
        *total += shift / (double)C;
        *size += fabs(shift) / (double)C;
    }
    return C > 2;
}

static const char *name_shift(const struct gradient *g, double tolerance)
{
    double total, size;
    if (!is_shifted_by_row(g, tolerance, &total, &size))
        return "";
    return fabs(total) <= 1e-3 * size && g->n > g->x->dim[g->x->rank - 1]
               ? "it differs by a constant within each row, and these cancel: a mean over all "
                 "rows instead of over each"
               : "it differs by a constant within each row: a sum over the row is missing";
}

/* Whether elements on which the function does not depend get a gradient, others being right or
   not. */
static bool ignores_support(const struct gradient *g)
{
    int64_t outside = 0, wrong = 0;
    for (int64_t i = 0; i < g->n; i++) {
        outside += g->difference[i] == 0;
        wrong += g->difference[i] == 0 && fabs(g->backward[i]) > g->rounding[i];
    }
    return outside < g->n && wrong > 0 && 2 * wrong >= outside;
}

static const char *name_pattern(const struct gradient *g, double tolerance)
{
    if (!all_finite(g->n, g->difference))
        return "the function is not finite around here";
    if (g->missing)
        return "no gradient arrives: the input is detached, or backward leaves it out";
    if (!all_finite(g->n, g->backward))
        return "backward gives a number that is not finite";
    if (largest(g->n, g->backward) == 0)
        return "the gradient is 0 everywhere, as if the input were detached";
    if (is_assigned(g, tolerance))
        return "the gradient is assigned instead of added to what is there";
    if (fits(g, g->backward, g->difference, 1, tolerance))
        return "what is added depends on what was there: is a part assigned instead of added?";
    if (is_transposed(g, tolerance))
        return "the gradient is transposed in its last two axes";
    if (fits(g, g->backward, g->last, 1, tolerance) || fits(g, g->backward, g->first, 1, tolerance))
        return "only one of the outputs that an element reaches is counted: a broadcast is not "
               "summed";
    return "";
}

/* Transposes square matrices in place. */
static bool transpose(sb_tensor *x)
{
    int64_t n = x->rank < 2 ? 0 : x->dim[x->rank - 1], matrix = n * n;
    if (n < 2 || x->dim[x->rank - 2] != n || !sb_dtype_is_real(x->dtype))
        return false;
    for (int64_t i = 0; i < tensor_size(x); i++) {
        int64_t row = i % matrix / n, column = i % n, other = i + (column - row) * (n - 1);
        double value = sb_tensor_get(x, i);
        if (row < column &&
            !(sb_tensor_set(x, i, sb_tensor_get(x, other)) && sb_tensor_set(x, other, value)))
            return false;
    }
    return true;
}

/* Whether backward equals the derivative of f with another input transposed, as after a product
   with a matrix that should have been transposed. */
static bool fits_transposed(struct evaluation *e, const struct gradient *g, sb_tensor *turned,
                            double tolerance)
{
    const double allowed = tolerance * largest(g->n, g->backward);
    const uint64_t written = tensor_written(turned);
    const bool square = transpose(turned);
    bool ok = square;
    for (int64_t i = 0; ok && i < g->n; i++) { /* it usually ends at once: a model has many pairs */
        struct difference d = {0};
        ok = evaluation_difference(e, g->x, i, 1, &d) &&
             fabs(g->backward[i] - d.value) <= allowed + g->rounding[i];
    }
    if (square && transpose(turned))
        tensor_forget_writes(turned, written);
    return ok;
}

void mistake_name(struct evaluation *e, const struct gradient *gradients, int n, int input,
                  double tolerance, char text[MISTAKE_SIZE])
{
    const struct gradient *g = &gradients[input];
    snprintf(text, MISTAKE_SIZE, "%s", name_pattern(g, tolerance));
    double factor = text[0] ? 0 : common_factor(g, tolerance);
    if (factor != 0)
        name_factor(g->x, factor, text);
    if (!text[0] && e->exact)
        snprintf(text, MISTAKE_SIZE, "%s", name_shift(g, tolerance));
    if (!text[0] && e->exact && ignores_support(g))
        snprintf(text, MISTAKE_SIZE,
                 "elements on which the function does not depend get a gradient: the support of a "
                 "mask is ignored");
    for (int k = 0; k < n && !text[0]; k++)
        if (gradients[k].x != g->x && fits_transposed(e, g, gradients[k].x, tolerance))
            snprintf(text, MISTAKE_SIZE, "as if input %d were transposed in a product", k);
}
