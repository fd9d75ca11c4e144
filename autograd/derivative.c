#include "autograd/derivative.h"
#include "autograd/dual_tape.h"
#include "tensor/failure.h"

static bool check_direction(const char *who, const sb_tensor *x, const sb_tensor *v, int i)
{
    if (!x)
        return sb_fail("%s: x[%d] is NULL", who, i);
    if (!tensor_readable(who, x) || (v && !tensor_readable(who, v)))
        return false;
    if (x->dtype == SB_F64 && x->device->kind != DEVICE_CPU)
        return sb_fail("%s: x[%d] is %s of f64 on %s; it must be on cpu", who, i,
                       tensor_shape(x).text, x->device->name);
    if (v && (x->dtype != SB_F64 || v->dtype != SB_F64 || v->device != x->device ||
              !shape_equal(x->rank, x->dim, v->rank, v->dim)))
        return sb_fail("%s: x[%d] is %s of %s, v[%d] is %s of %s on %s; both must be f64 of one "
                       "shape, on cpu",
                       who, i, tensor_shape(x).text, sb_dtype_name(x->dtype), i,
                       tensor_shape(v).text, sb_dtype_name(v->dtype), v->device->name);
    return true;
}

static bool check_directions(const char *who, sb_function f, sb_tensor *const x[],
                             sb_tensor *const v[], int n)
{
    if (!f || !x || !v)
        return fail_null(who, !f ? "f" : !x ? "x" : "v");
    if (n < 1)
        return sb_fail("%s: n is %d; it needs at least 1 input", who, n);
    for (int i = 0; i < n; i++)
        if (!check_direction(who, x[i], v[i], i))
            return false;
    return true;
}

/* f(x) on the open dual tape, as dual numbers. */
static sb_tensor *run_dual(const char *who, sb_function f, void *context, sb_tensor *const x[])
{
    sb_tensor *y = f(context, x);
    if (!y)
        return sb_fail("%s: the function gives no tensor%s%s", who, sb_error()[0] ? ": " : "",
                       sb_error());
    if (y->dtype != SB_F64 && y->dtype != SB_DUAL)
        return sb_fail("%s: the function gives %s, not f64", who, sb_dtype_name(y->dtype));
    return twin_of(who, y);
}

bool sb_jvp(sb_function f, void *context, sb_tensor *const x[], sb_tensor *const v[], int n,
            sb_tensor **y, sb_tensor **dy)
{
    sb_tensor *unwanted[2] = {NULL, NULL};
    sb_tensor **value = y ? y : &unwanted[0], **tangent = dy ? dy : &unwanted[1];
    *value = *tangent = NULL;
    if (!check_directions("jvp", f, x, v, n))
        return false;
    struct dual_tape dual;
    bool ok = dual_tape_begin(&dual, SB_NO_RECORD, x, v, n);
    sb_tensor *result = ok ? run_dual("jvp", f, context, x) : NULL;
    ok = result && (!y || (*value = twin_part("jvp", result, sb_dual_value))) &&
         (!dy || (*tangent = twin_part("jvp", result, sb_dual_tangent)));
    if (dual_tape_end(&dual) && ok)
        return true;
    sb_tensor_release(*value);
    sb_tensor_release(*tangent);
    *value = *tangent = NULL;
    return sb_fail("%s", sb_error()); /* fails the outer tape too */
}

/* The tangent of the gradient of x's twin; zeros where the loss does not depend on x. */
static sb_tensor *tangent_of_gradient(sb_tensor *x)
{
    sb_tensor *grad = sb_tensor_grad(twin_of("hvp", x));
    if (grad)
        return twin_part("hvp", grad, sb_dual_tangent);
    sb_tensor *zeros = tensor_new("hvp", x->device, SB_F64, x->rank, x->dim);
    if (zeros)
        tensor_zero(zeros);
    return zeros;
}

static bool hessian_products(sb_function f, void *context, sb_tensor *const x[], int n,
                             sb_tensor *hv[])
{
    for (int i = 0; i < n; i++)
        if (x[i]->dtype == SB_F64)
            twin_of("hvp", x[i])->requires_grad = true;
    sb_tensor *loss = run_dual("hvp", f, context, x);
    if (!loss)
        return false;
    if (tensor_size(loss) != 1)
        return sb_fail("hvp: the function gives %s, not one number", tensor_shape(loss).text);
    if (loss->requires_grad && !sb_backward(loss))
        return false;
    for (int i = 0; i < n; i++)
        if (x[i]->dtype == SB_F64 && !(hv[i] = tangent_of_gradient(x[i])))
            return false;
    return true;
}

bool sb_hvp(sb_function f, void *context, sb_tensor *const x[], sb_tensor *const v[], int n,
            sb_tensor *hv[])
{
    for (int i = 0; hv && i < n; i++)
        hv[i] = NULL;
    if (!hv)
        return fail_null("hvp", "hv");
    if (!check_directions("hvp", f, x, v, n))
        return false;
    struct dual_tape dual;
    bool ok = dual_tape_begin(&dual, SB_RECORD, x, v, n) && hessian_products(f, context, x, n, hv);
    if (dual_tape_end(&dual) && ok)
        return true;
    for (int i = 0; i < n; i++) {
        sb_tensor_release(hv[i]);
        hv[i] = NULL;
    }
    return sb_fail("%s", sb_error()); /* fails the outer tape too */
}
