#include "nn/flat.h"
#include "nn/optimiser_parts.h"
#include "ops/ops.h"
#include "ops/update.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include <math.h>

static bool has_gradient(const char *who, const sb_parameters *set)
{
    for (int64_t i = 0; i < sb_parameters_count(set); i++)
        if (sb_tensor_grad(sb_parameters_get(set, i)))
            return true;
    return sb_fail("%s: no parameter has a gradient; call sb_backward first", who);
}

/* A sum of squares, and the first parameter with a gradient that is not finite; -1: none. */
struct squares {
    double sum;
    int64_t bad;
};

/* Adds the squares of the distributed parameters, or of the others. Contiguous gradients are one
   pass. */
static bool add_squares(const sb_parameters *set, bool cut, struct squares *squares)
{
    const sb_tensor *g = parameters_gradients(set);
    const struct update_kernels *k = kernel_row(&update_rows, g);
    const int64_t n = sb_parameters_count(set);
    *squares = (struct squares){0, -1};
    for (int64_t i = 0, end; k && i < n; i = end) {
        for (end = i + 1; end < n && parameters_is_cut(set, end) == parameters_is_cut(set, i);)
            end++;
        if (parameters_is_cut(set, i) != cut)
            continue;
        const int64_t first = parameters_offset(set, g, i), stop = parameters_offset(set, g, end);
        double sum;
        int64_t bad;
        if (!k->squares(stop - first, tensor_element(g, first), &sum, &bad))
            return false;
        squares->sum += sum;
        if (bad >= 0 && squares->bad < 0)
            squares->bad = parameters_at(set, g, first + bad);
    }
    return k != NULL;
}

/* Sums the squares of distributed parameters over ranks. */
static bool join(const char *who, sb_communicator *ranks, struct squares *squares)
{
    const int n = sb_communicator_size(ranks);
    /* The sum; then, for each rank, 1 + the index of its first parameter that is not finite. */
    double *all = memory_new((size_t)(1 + n) * sizeof *all);
    if (!all)
        return sb_fail("%s: out of memory", who);
    all[0] = squares->sum;
    all[1 + sb_communicator_rank(ranks)] = (double)(squares->bad + 1);
    const bool ok = sb_communicator_sum(ranks, SB_F64, 1 + n, all);
    squares->sum = all[0];
    for (int r = 0; r < n; r++)
        if (all[1 + r] > 0 && (squares->bad < 0 || all[1 + r] <= (double)squares->bad))
            squares->bad = (int64_t)all[1 + r] - 1;
    memory_free(all);
    return ok;
}

/* The squares of the whole gradient: distributed parameters are summed over ranks, others count
   once. */
static bool square(const char *who, const sb_parameters *set, struct squares *whole)
{
    sb_communicator *ranks = parameters_ranks(set);
    struct squares cut;
    if (!add_squares(set, false, whole))
        return false;
    if (!ranks)
        return true;
    if (!add_squares(set, true, &cut) || !join(who, ranks, &cut))
        return false;
    whole->sum += cut.sum;
    if (cut.bad >= 0 && (whole->bad < 0 || cut.bad < whole->bad))
        whole->bad = cut.bad;
    return true;
}

bool clip_scale(const struct clip_caller *caller, sb_parameters *set, double limit, double factor,
                double *norm, double *scale)
{
    if (!has_gradient(caller->who, set))
        return false;
    parameters_settle_gradients(set);
    struct squares squares;
    if (!square(caller->who, set, &squares))
        return false;
    *norm = factor * sqrt(squares.sum);
    *scale = factor * (limit > 0 ? fmin(1, limit / (*norm + 1e-6)) : 1);
    if (isfinite(*norm))
        return true;
    if (squares.bad < 0)
        return sb_fail("%s: the norm of the gradient overflows; %s", caller->who, caller->then);
    return sb_fail("%s: the gradient of \"%s\" is not finite; %s", caller->who,
                   sb_parameters_name(set, squares.bad), caller->then);
}

/* g *= scale, in place. */
static bool multiply(sb_tensor *g, double scale)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    const sb_tensor *y = sb_scale(g, scale);
    const bool ok = y && g->device->copy(g->data, y->data, tensor_bytes(g));
    return sb_tape_end(&tape) && ok;
}

bool sb_parameters_clip(sb_parameters *set, double limit, double *norm)
{
    static const struct clip_caller caller = {"parameters_clip", "nothing was clipped"};
    const char *who = caller.who;
    double before, scale;
    if (!set)
        return fail_null(who, "set");
    if (!(limit > 0 && isfinite(limit)))
        return sb_fail("%s: limit is %g, not a positive number", who, limit);
    if (!has_gradient(who, set) || !parameters_flatten(set) ||
        !clip_scale(&caller, set, limit, 1, &before, &scale))
        return false;
    if (norm)
        *norm = before;
    return scale == 1 || multiply(parameters_gradients(set), scale);
}

const char *clip_bad_parameter(const sb_parameters *set)
{
    const sb_tensor *w = parameters_values(set);
    const struct update_kernels *k = kernel_row(&update_rows, w);
    double sum;
    int64_t bad = -1;
    if (!k || !k->squares(tensor_size(w), w->data, &sum, &bad) || bad < 0)
        return NULL;
    return sb_parameters_name(set, parameters_at(set, w, bad));
}
