/* Lesson 10, the tape: a solution. */
#include "lesson.h"
#include <math.h>

/* y = x w, with x (R, I) and w (I, O): y[r * O + o] = sum_i x[r * I + i] w[i * O + o]. */
bool project_backward(sb_node *node)
{
    sb_tensor *x = sb_node_input(node, 0), *w = sb_node_input(node, 1);
    sb_tensor *dx = sb_node_dx(node, 0), *dw = sb_node_dx(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    const int64_t R = sb_tensor_dim(x, 0), I = sb_tensor_dim(w, 0), O = sb_tensor_dim(w, 1);
    const double *from = sb_tensor_data(x), *weight = sb_tensor_data(w);
    double *to_x = dx ? sb_tensor_data(dx) : NULL, *to_w = dw ? sb_tensor_data(dw) : NULL;
    for (int64_t r = 0; r < R; r++)
        for (int64_t i = 0; i < I; i++)
            for (int64_t o = 0; o < O; o++) {
                if (to_x)
                    to_x[r * I + i] += dy[r * O + o] * weight[i * O + o];
                if (to_w)
                    to_w[i * O + o] += from[r * I + i] * dy[r * O + o];
            }
    return true;
}

/* One head of attention, y = a v with a = softmax(s) and s = q k' / sqrt D. The rows of q, k, v and
   y, (L, D), are words. a, (L, L), has a row for each query, and 0 where the mask blocks a key. */
void attention_backward(int64_t L, int64_t D, const double *q, const double *k, const double *v,
                        const double *a, const double *dy, double *dq, double *dk, double *dv)
{
    const double scale = 1 / sqrt((double)D);
    for (int64_t i = 0; i < L; i++) {
        double da[L], ds[L];
        for (int64_t j = 0; j < L; j++) { /* y_i += a_ij v_j */
            da[j] = 0;
            for (int64_t c = 0; c < D; c++) {
                da[j] += dy[i * D + c] * v[j * D + c];
                dv[j * D + c] += a[i * L + j] * dy[i * D + c];
            }
        }
        softmax_backward(L, a + i * L, da, ds);
        for (int64_t j = 0; j < L; j++) /* s_ij += q_i k_j scale */
            for (int64_t c = 0; c < D; c++) {
                dq[i * D + c] += ds[j] * k[j * D + c] * scale;
                dk[j * D + c] += ds[j] * q[i * D + c] * scale;
            }
    }
}
