#include "autograd/gradcheck_parts.h"
#include "tensor/memory.h"
#include <float.h>
#include <math.h>

/* Fractional parts of multiples of the golden ratio: evenly distributed, without a period. */
double evaluation_weight(int64_t i)
{
    double turn = 0.618033988749895 * (double)(i + 1);
    return 0.25 + turn - floor(turn);
}

/* The gradient with respect to y of the scalar that is differentiated, in f64. */
static sb_tensor *evaluation_dy(const sb_tensor *y)
{
    enum { AT_ONCE = 256 };
    sb_tensor *dy = tensor_new("gradcheck", y->device, SB_F64, y->rank, y->dim);
    for (int64_t i = 0, n = dy ? tensor_size(dy) : 0; i < n; i += AT_ONCE) {
        double weight[AT_ONCE];
        for (int64_t k = 0; k < AT_ONCE; k++)
            weight[k] = evaluation_weight(i + k);
        tensor_write_part(dy, i, n - i < AT_ONCE ? n - i : AT_ONCE, weight);
    }
    return dy;
}

bool evaluation_back(sb_tensor *y, const struct listener *listener)
{
    if (!y->requires_grad)
        return true;
    sb_tensor *dy = evaluation_dy(y);
    const bool ok = dy && backward_from_heard(y, dy, listener);
    sb_tensor_release(dy);
    return ok;
}

/* Runs f on the open tape, with the stream rewound, and reads y into *values. */
static sb_tensor *run(struct evaluation *e, sb_tape *tape, double *const *values)
{
    if (e->random) {
        *e->random = e->start;
        sb_tape_random(tape, e->random);
    }
    sb_tensor *y = e->f(e->context, e->x);
    if (!y)
        return sb_fail("the function returns no tensor");
    if (y->dtype != SB_F64 && y->dtype != SB_DUAL)
        return sb_fail("the function returns %s; it must be f64", sb_dtype_name(y->dtype));
    int64_t n = tensor_size(y);
    if (e->outputs < 0) {
        e->up = memory_new((size_t)(2 * n) * sizeof(double));
        if (!e->up)
            return sb_fail("out of memory for %s", tensor_shape(y).text);
        e->down = e->up + n;
        e->outputs = n;
    }
    if (n != e->outputs)
        return sb_fail("the function returns %lld elements, then %lld; its shape must not change",
                       (long long)e->outputs, (long long)n);
    return sb_tensor_read(y, *values) ? y : NULL;
}

/* Whether dual numbers can follow a node: without an input of f64 its outputs are constants. */
static bool is_dual(const sb_node *node)
{
    bool constant = true;
    for (int i = 0; i < node->inputs; i++)
        constant &= node->in[i]->dtype != SB_F64;
    if (constant)
        return true;
    for (int i = 0; i < node->made; i++)
        if (sb_dtype_is_real(node->out[i]->dtype) && node->out[i]->dtype != SB_F64)
            return false;
    return node->operation->dual && node->in[0]->device->kind == DEVICE_CPU;
}

/* Whether dual numbers can follow all operations on the open tape. */
static bool all_dual(void)
{
#ifdef SOFTBACK_PORTABLE
    return false;
#endif
    for (const sb_node *node = tape_open()->last; node; node = node->previous)
        if (!is_dual(node))
            return false;
    return true;
}

static bool evaluate(struct evaluation *e, double *const *values)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_NO_RECORD);
    bool ok = run(e, &tape, values) != NULL;
    return sb_tape_end(&tape) && ok;
}

bool evaluation_backward(struct evaluation *e, double *const *values)
{
    sb_tape tape;
    sb_tape_begin(&tape, SB_RECORD);
    sb_tensor *y = run(e, &tape, values);
    e->dual = y && y->device->kind == DEVICE_CPU && all_dual();
    bool ok = y && evaluation_back(y, NULL);
    return sb_tape_end(&tape) && ok;
}

/* ---- by dual numbers ---- */

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

sb_tensor *evaluation_dual(struct evaluation *e, struct dual_tape *dual, sb_mode mode,
                           sb_tensor *const x[], sb_tensor *const v[], int n)
{
    const bool ok = dual_tape_begin(dual, mode, x, v, n);
    sb_tensor *y = ok ? run(e, &dual->tape, &e->up) : NULL;
    return y ? twin_of("gradcheck", y) : NULL;
}

static void read_tangents(const struct evaluation *e, const sb_tensor *y, struct difference *d)
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
                 bool wants_largest, struct difference *d)
{
    struct dual_tape dual;
    *d = (struct difference){0};
    const struct listener listener = {.begins = add_largest, .context = &d->largest};
    sb_tensor *y = evaluation_dual(e, &dual, wants_largest ? SB_RECORD : SB_NO_RECORD, x, v, n);
    if (y)
        read_tangents(e, y, d);
    const bool ok = y && (!wants_largest || evaluation_back(y, &listener));
    d->rounding = 64 * DBL_EPSILON * d->largest;
    return dual_tape_end(&dual) && ok;
}

/* The derivative with respect to element i of x. */
static bool exact_difference(struct evaluation *e, sb_tensor *x, int64_t i, struct difference *d)
{
    sb_tensor *v = tensor_new("gradcheck", x->device, x->dtype, x->rank, x->dim);
    const bool ok =
        v && tensor_zero(v) && sb_tensor_set(v, i, 1) && exact_along(e, &x, &v, 1, true, d);
    sb_tensor_release(v);
    return ok;
}

/* ---- by differences ---- */

static struct difference difference_of(const struct evaluation *e, double width)
{
    struct difference d = {0};
    double changed = 0, largest = 0;
    bool reached = false;
    for (int64_t k = 0; k < e->outputs; k++) {
        double up = e->up[k], down = e->down[k], w = evaluation_weight(k);
        double size = w * fmax(fabs(up), fabs(down));
        if (!isfinite(up) || !isfinite(down))
            return (struct difference){.value = NAN, .first = NAN, .last = NAN};
        largest = fmax(largest, size);
        if (up == down)
            continue;
        d.last = w * (up - down) / width;
        d.first = reached ? d.first : d.last;
        d.value += d.last;
        changed += size;
        reached = true;
    }
    d.rounding = 4 * DBL_EPSILON * (changed + largest) / width;
    return d;
}

double evaluation_step(const struct evaluation *e, double x)
{
    return e->step * fmax(1, fabs(x));
}

bool evaluation_difference(struct evaluation *e, sb_tensor *x, int64_t i, double part,
                           struct difference *d)
{
    if (e->exact)
        return exact_difference(e, x, i, d);
    double value = sb_tensor_get(x, i), h = part * evaluation_step(e, value);
    double up = value + h, down = value - h;
    const uint64_t written = tensor_written(x);
    bool ok = sb_tensor_set(x, i, up) && evaluate(e, &e->up) && sb_tensor_set(x, i, down) &&
              evaluate(e, &e->down);
    if (sb_tensor_set(x, i, value))
        tensor_forget_writes(x, written);
    if (ok)
        *d = difference_of(e, up - down); /* 2h after rounding in x */
    return ok;
}
