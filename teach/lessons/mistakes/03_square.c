/* expect: your time grows with n^2 */
#include "lesson.h"

void softmax_backward(int64_t n, const double *a, const double *g, double *ds)
{
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += g[i] * a[i] * ((i == j) - a[j]);
        ds[j] = sum;
    }
}
