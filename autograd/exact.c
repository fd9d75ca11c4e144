#include "autograd/exact.h"
#include "autograd/dual_tape.h"
#include "autograd/listener.h"
#include <float.h>
#include <math.h>

static void add_largest(void *context, const sb_node *node)
{
    double *largest = context, sum = 0;
    for (int i = 0; i < node->made; i++) {
        const sb_tensor *y = node->out[i], *dy = sb_tensor_grad(y);
        for (int64_t k = 0; dy && y->dtype == SB_DUAL && k < tensor_size(y); k++)
            sum += fabs(sb_tensor_get(dy, k) * sb_tensor_tangent(y, k));
    }
    *largest = sum > *largest ? sum : *largest;
}

/* Runs backward of the weighted sum of y on the open dual tape. */
static bool find_largest(sb_tensor *y, double *largest)
{
    const struct listener listener = {.begins = add_largest, .context = largest};
    if (!y->requires_grad)
        return true;
    sb_tensor *dy = evaluation_dy(y);
    const bool ok = dy && backward_from_heard(y, dy, &listener);
    sb_tensor_release(dy);
    return ok;
}

static void read_tangents(const struct evaluation *e, const sb_tensor *y, struct directional *d)
{
    bool reached = false;
    for (int64_t k = 0; k < e->outputs; k++) {
        const double part = evaluation_weight(k) * sb_tensor_tangent(y, k);
        d->value += isfinite(e->up[k]) ? part : NAN;
        if (part == 0)
            continue;
        d->last = part;
        d->first = reached ? d->first : part;
        reached = true;
    }
}

bool exact_along(struct evaluation *e, sb_tensor *const x[], sb_tensor *const v[], int n,
                 bool wants_largest, struct directional *d)
{
    struct dual_tape dual;
    *d = (struct directional){0};
    bool ok = dual_tape_begin(&dual, wants_largest ? SB_RECORD : SB_NO_RECORD, x, v, n);
    evaluation_rewind(e, &dual.tape);
    sb_tensor *y = ok ? evaluation_run(e, &e->up) : NULL;
    y = y ? twin_of("gradcheck", y) : NULL;
    if (y)
        read_tangents(e, y, d);
    ok = y && (!wants_largest || find_largest(y, &d->largest));
    return dual_tape_end(&dual) && ok;
}

bool exact_difference(struct evaluation *e, sb_tensor *x, int64_t i, struct difference *d)
{
    struct directional along;
    sb_tensor *v = tensor_new("gradcheck", x->device, x->dtype, x->rank, x->dim);
    const bool ok =
        v && tensor_zero(v) && sb_tensor_set(v, i, 1) && exact_along(e, &x, &v, 1, true, &along);
    if (ok)
        *d = (struct difference){.value = along.value,
                                 .rounding = 64 * DBL_EPSILON * along.largest,
                                 .first = along.first,
                                 .last = along.last};
    sb_tensor_release(v);
    return ok;
}
