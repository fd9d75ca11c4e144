/* Lesson 10, the tape: a solution. */
#include "lesson.h"

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
