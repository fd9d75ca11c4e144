#include "autograd/dual_tape.h"
#include "autograd/replicas.h"
#include "tensor/memory.h"

/* Adds a twin for a f64 tensor, with this tangent (f64 of its shape; NULL: zeros). The twin has no
   gradient, and requires one if `of` is a leaf that does. */
static sb_tensor *twins_add(struct twins *twins, sb_tensor *of, const sb_tensor *tangent)
{
    if (!memory_room(&twins->pair, twins->count, &twins->room, sizeof *twins->pair))
        return sb_fail("dual tape: out of memory");
    sb_tensor *dual = tensor_new("dual tape", of->device, SB_DUAL, of->rank, of->dim);
    if (!dual)
        return NULL;
    const double *value = of->data, *v = tangent ? tangent->data : NULL;
    sb_dual *x = dual->data;
    for (int64_t i = 0, n = tensor_size(of); i < n; i++)
        x[i] = sb_dual_make(value[i], v ? v[i] : 0);
    dual->requires_grad = of->requires_grad && of->tape == 0;
    twins->pair[twins->count++] = (struct twin){sb_tensor_retain(of), dual};
    return dual;
}

sb_tensor *twin_of(const char *who, sb_tensor *t)
{
    const struct open_tape *tape = tape_open();
    struct twins *twins = tape ? tape->twins : NULL;
    if (tape && tape->replicas)
        return replica_of(tape->replicas, t);
    if (!twins || !t || t->dtype != SB_F64)
        return t;
    if (t->device->kind != DEVICE_CPU)
        return sb_fail("%s: an input is %s of f64 on %s; exact derivatives need the CPU", who,
                       tensor_shape(t).text, t->device->name);
    if (!tensor_readable(who, t))
        return NULL;
    for (int64_t i = 0; i < twins->count; i++)
        if (twins->pair[i].of == t)
            return twins->pair[i].dual;
    return twins_add(twins, t, NULL);
}

sb_tensor *twin_part(const char *who, const sb_tensor *dual, double (*part)(sb_dual))
{
    sb_tensor *y = tensor_new(who, dual->device, SB_F64, dual->rank, dual->dim);
    const sb_dual *x = dual->data;
    for (int64_t i = 0; y && i < tensor_size(y); i++)
        ((double *)y->data)[i] = part(x[i]);
    return y;
}

bool dual_tape_begin(struct dual_tape *d, sb_mode mode, sb_tensor *const x[], sb_tensor *const v[],
                     int n)
{
    *d = (struct dual_tape){0};
    const bool inside = tape_open() && tape_open()->twins;
    sb_tape_begin(&d->tape, mode);
    if (inside)
        return sb_fail("an exact derivative inside the function of another one would be a constant "
                       "of it; second derivatives are those of sb_hvp");
    for (int i = 0; i < n; i++) {
        bool added = x[i]->dtype != SB_F64;
        for (int j = 0; j < i && !added; j++) /* a tensor that is two inputs has one twin */
            added = x[j] == x[i];
        if (!added && x[i]->device->kind != DEVICE_CPU)
            return sb_fail("input %d is %s of f64 on %s; exact derivatives need the CPU", i,
                           tensor_shape(x[i]).text, x[i]->device->name);
        if (!added && !twins_add(&d->twins, x[i], v[i]))
            return false;
    }
    tape_open()->twins = &d->twins;
    tape_open()->replicas = NULL; /* twins have gradients of their own */
    return true;
}

bool dual_tape_end(struct dual_tape *d)
{
    const bool ok = sb_tape_end(&d->tape);
    for (int64_t i = 0; i < d->twins.count; i++) {
        sb_tensor_release(d->twins.pair[i].of);
        sb_tensor_release(d->twins.pair[i].dual);
    }
    memory_free(d->twins.pair);
    return ok;
}
