/* expect: asked for more */
#include "lesson.h"
#include <stdlib.h>

void softmax_backward(int64_t n, const double *a, const double *g, double *ds)
{
    double *J = malloc(sizeof(double[n][n]));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            J[i * n + j] = a[i] * ((i == j) - a[j]);
    for (int64_t j = 0; j < n; j++) {
        ds[j] = 0;
        for (int64_t i = 0; i < n; i++)
            ds[j] += g[i] * J[i * n + j];
    }
    free(J);
}
