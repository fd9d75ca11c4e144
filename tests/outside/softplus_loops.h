/*
 * The loops of softplus.c for one type of number: `real` is double or sb_dual. The operators + - *
 * / are C's. A function of one variable is APPLY(x, its value, its derivative) at VALUE(x).
 */

static void NAME(forward)(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = APPLY(x[i], log1p(exp(VALUE(x[i]))), 1 / (1 + exp(-VALUE(x[i]))));
}

static void NAME(backward)(int64_t n, const real *x, const real *dy, real *dx, int64_t wrong)
{
    for (int64_t i = 0; i < n; i++) {
        const double sigmoid = 1 / (1 + exp(-VALUE(x[i])));
        const real slope = APPLY(x[i], sigmoid, sigmoid * (1 - sigmoid));
        dx[i] += dy[i] * slope * (i == wrong ? 1 + 1e-8 : 1);
    }
}

#undef real
#undef NAME
#undef VALUE
#undef APPLY
