#include "nn/clip.h"
#include "nn/flat.h"
#include "ops/update.h"
#include <math.h>

static bool has_gradient(const sb_parameters *set)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        if (sb_grad(sb_parameters_get(set, i)))
            return true;
    return sb_fail("optimiser_step: no parameter has a gradient; call sb_backward first");
}

bool clip_scale(sb_parameters *set, double limit, double factor, double *norm, double *scale)
{
    if (!has_gradient(set))
        return false;
    parameters_settle_gradients(set);
    const sb_tensor *g = parameters_gradients(set);
    const struct update_kernels *k = kernel_row(&update_rows, g);
    double sum;
    int64_t bad;
    if (!k || !k->squares(tensor_size(g), g->data, &sum, &bad))
        return false;
    *norm = factor * sqrt(sum);
    *scale = factor * (limit > 0 ? fmin(1, limit / (*norm + 1e-6)) : 1);
    if (isfinite(*norm))
        return true;
    if (bad < 0)
        return sb_fail("optimiser_step: the norm of the gradient overflows; step skipped");
    return sb_fail("optimiser_step: the gradient of \"%s\" is not finite; step skipped",
                   sb_parameters_name(set, parameters_at(set, bad)));
}
