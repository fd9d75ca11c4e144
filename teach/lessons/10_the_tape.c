/* Lesson 10, the tape. The page is teach/lessons/10_the_tape.md. */
#include "lesson.h"

/* y = x w, with x (R, I) and w (I, O): y[r * O + o] = sum_i x[r * I + i] w[i * O + o]. */
bool project_backward(sb_node *node)
{
    sb_tensor *x = sb_node_input(node, 0), *w = sb_node_input(node, 1);
    sb_tensor *dx = sb_node_dx(node, 0), *dw = sb_node_dx(node, 1);
    const double *dy = sb_tensor_data(sb_node_dy(node, 0));
    const int64_t R = sb_tensor_dim(x, 0), I = sb_tensor_dim(w, 0), O = sb_tensor_dim(w, 1);
    /* HOLE, first part, in place of the next line: add to dx and dw their parts of the gradient.
       Their numbers are at sb_tensor_data(dx); dx is NULL where no gradient is needed. */
    (void)dx, (void)dw, (void)dy, (void)R, (void)I, (void)O;
    return true; /* all went well */
}

/* One head of attention, y = a v with a = softmax(s) and s = q k' / sqrt D. The rows of q, k, v and
   y, (L, D), are words. a, (L, L), has a row for each query, and 0 where the mask blocks a key. */
void attention_backward(int64_t L, int64_t D, const double *q, const double *k, const double *v,
                        const double *a, const double *dy, double *dq, double *dk, double *dv)
{
    /* HOLE, second part: for each query i, da_ij of all keys j, from these ds_ij, and add to dq, dk
       and dv. softmax_backward(n, a, g, ds) of lesson 3 is there. */
}
