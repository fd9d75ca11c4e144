#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

static sb_tensor *handle_new(const char *who)
{
    sb_tensor *t = memory_new(sizeof *t);
    if (!t)
        return sb_fail("%s: out of memory", who);
    atomic_init(&t->refs, 1);
    atomic_init(&t->holders, 1);
    return t;
}

/* A tensor without data. */
static sb_tensor *tensor_of(const char *who, const sb_device *device, sb_dtype dtype, int rank,
                            const int64_t *dim)
{
    if (sb_dtype_bytes(dtype) == 0)
        return sb_fail("%s: %d is not a dtype", who, (int)dtype);
    if (!shape_check(who, rank, dim))
        return NULL;
    sb_tensor *t = handle_new(who);
    if (!t)
        return NULL;
    t->dtype = dtype;
    t->device = device;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dim[i] = dim[i];
    return t;
}

sb_tensor *tensor_new(const char *who, const sb_device *device, sb_dtype dtype, int rank,
                      const int64_t *dim)
{
    sb_tensor *t = tensor_of(who, device, dtype, rank, dim);
    if (!t)
        return NULL;
    const uint64_t failures = failure_count();
    t->data = pool_take(device->pool, tensor_bytes(t));
    if (!t->data) {
        if (failure_count() == failures)
            sb_fail("%s: out of memory for %s of %s, %zu bytes on %s", who, tensor_shape(t).text,
                    sb_dtype_name(dtype), tensor_bytes(t), device->name);
        memory_free(t);
        return NULL;
    }
    return t;
}

sb_tensor *tensor_view(const char *who, sb_tensor *t, int64_t offset, int rank, const int64_t *dim)
{
    sb_tensor *owner = t->base ? t->base : t;
    sb_tensor *view = handle_new(who);
    if (!view)
        return NULL;
    view->dtype = t->dtype;
    view->device = t->device;
    view->rank = rank;
    for (int i = 0; i < rank; i++)
        view->dim[i] = dim[i];
    view->data = (char *)t->data + (size_t)offset * sb_dtype_bytes(t->dtype);
    view->base = sb_tensor_retain(owner);
    atomic_fetch_add(&owner->holders, 1);
    return view;
}

atomic_uint_fast64_t tensor_write_count;

void tensor_free_data(sb_tensor *t)
{
    if (t->data_gone)
        return;
    sb_tensor *owner = t->base ? t->base : t;
    t->data_gone = true;
    if (atomic_fetch_sub(&owner->holders, 1) == 1) {
        if (owner->release)
            owner->release(owner->release_context);
        else
            pool_give(owner->device->pool, owner->data, tensor_bytes(owner));
        owner->data = NULL;
    }
    if (t != owner)
        t->data = NULL;
}

sb_tensor *sb_tensor_retain(sb_tensor *t)
{
    if (t)
        atomic_fetch_add(&t->refs, 1);
    return t;
}

void sb_tensor_release(sb_tensor *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    tensor_free_data(t);
    sb_tensor_release(t->grad);
    sb_tensor_release(t->base);
    sb_tensor_release(t->rounded);
    memory_free(t);
}

void tensor_drop_grad(sb_tensor *t)
{
    t->grad_current = false;
    if (t->grad && (!t->grad->base ||
                    t->tape != 0)) { /* the gradient of a leaf may be a view of a flat buffer */
        sb_tensor_release(t->grad);
        t->grad = NULL;
    }
}

bool tensor_readable(const char *who, const sb_tensor *t)
{
    if (!t->data_gone)
        return true;
    return sb_fail("%s: %s output %s: freed by backward; call sb_keep() before sb_backward()", who,
                   t->origin ? t->origin : "an operation's", tensor_shape(t).text);
}

bool tensor_zero(sb_tensor *t)
{
    return t->device->zero(t->data, tensor_bytes(t));
}

/* Returns t if it was filled; else releases it and returns NULL. */
static sb_tensor *kept_if(sb_tensor *t, bool filled)
{
    if (!filled)
        sb_tensor_release(t);
    return filled ? t : NULL;
}

sb_tensor *sb_tensor_zeros(sb_dtype dtype, int rank, const int64_t *dim)
{
    sb_tensor *t = tensor_new("tensor", sb_device_in_use(), dtype, rank, dim);
    return t ? kept_if(t, tensor_zero(t)) : NULL;
}

sb_tensor *sb_tensor_from(sb_dtype dtype, int rank, const int64_t *dim, const void *values)
{
    if (!values)
        return fail_null("tensor", "values");
    sb_tensor *t = tensor_new("tensor", sb_device_in_use(), dtype, rank, dim);
    return t ? kept_if(t, t->device->upload(t->data, values, tensor_bytes(t))) : NULL;
}

sb_tensor *sb_tensor_from_doubles(sb_dtype dtype, int rank, const int64_t *dim,
                                  const double *values)
{
    if (!values)
        return fail_null("tensor", "values");
    sb_tensor *t = tensor_new("tensor", sb_device_in_use(), dtype, rank, dim);
    return t ? kept_if(t, sb_tensor_write(t, values)) : NULL;
}

static void release_nothing(void *context)
{
    (void)context;
}

sb_tensor *sb_tensor_wrap(sb_dtype dtype, int rank, const int64_t *dim, void *data,
                          void (*release)(void *context), void *context)
{
    if (!data)
        return fail_null("tensor_wrap", "data");
    sb_tensor *t = tensor_of("tensor_wrap", sb_device_cpu(), dtype, rank, dim);
    if (!t)
        return NULL;
    const size_t bytes = sb_dtype_bytes(dtype), alignment = bytes > 8 ? 8 : bytes;
    if ((uintptr_t)data % alignment != 0) {
        memory_free(t);
        return sb_fail("tensor_wrap: the address of data is not a multiple of %zu, as %s needs; "
                       "copy it with sb_tensor_from()",
                       alignment, sb_dtype_name(dtype));
    }
    t->data = data;
    t->release = release ? release : release_nothing;
    t->release_context = context;
    return t;
}

sb_tensor *sb_tensor_to(const sb_tensor *t, const sb_device *device)
{
    if (!t || !device)
        return fail_null("tensor_to", t ? "device" : "t");
    if (!tensor_readable("tensor_to", t))
        return NULL;
    sb_tensor *copy = tensor_new("tensor_to", device, t->dtype, t->rank, t->dim);
    if (!copy)
        return NULL;
    copy->requires_grad = t->requires_grad && t->tape == 0;
    size_t bytes = tensor_bytes(t);
    bool here = device == t->device, from_host = t->device->kind == DEVICE_CPU;
    return kept_if(copy, here        ? device->copy(copy->data, t->data, bytes)
                         : from_host ? device->upload(copy->data, t->data, bytes)
                                     : t->device->download(copy->data, t->data, bytes));
}

sb_tensor *tensor_moved(sb_tensor *t, const sb_device *device)
{
    if (!t || t->device == device)
        return t;
    sb_tensor *copy = sb_tensor_to(t, device);
    sb_tensor_release(t);
    return copy;
}

sb_tensor *sb_tensor_scalar(sb_dtype dtype, double value)
{
    return sb_tensor_full(dtype, SB_SCALAR, value);
}

int sb_tensor_rank(const sb_tensor *t)
{
    return t ? t->rank : 0;
}

int64_t sb_tensor_dim(const sb_tensor *t, int axis)
{
    int i = t ? shape_axis(t->rank, axis) : -1;
    return i < 0 ? 0 : t->dim[i];
}

int64_t sb_tensor_size(const sb_tensor *t)
{
    return t ? tensor_size(t) : 0;
}

sb_dtype sb_tensor_dtype(const sb_tensor *t)
{
    return t ? t->dtype : SB_F32;
}

const sb_device *sb_tensor_device(const sb_tensor *t)
{
    return t ? t->device : NULL;
}

void *sb_tensor_data(sb_tensor *t)
{
    if (!t)
        return fail_null("tensor_data", "t");
    if (!tensor_readable("tensor_data", t))
        return NULL;
    if (t->device->kind != DEVICE_CPU)
        return sb_fail("tensor_data: the data lies on %s", t->device->name);
    if (t->dtype == SB_DUAL)
        return sb_fail("tensor_data: the elements are dual numbers; call sb_tensor_dual_data()");
    return t->data;
}

sb_tensor *sb_tensor_requires_grad(sb_tensor *t)
{
    if (!t)
        return fail_null("requires_grad", "t");
    if (!sb_dtype_is_real(t->dtype))
        return sb_fail("requires_grad: %s of %s: only real tensors have gradients",
                       tensor_shape(t).text, sb_dtype_name(t->dtype));
    if (t->tape != 0)
        return sb_fail("requires_grad: %s output %s is not a leaf",
                       t->origin ? t->origin : "an operation's", tensor_shape(t).text);
    t->requires_grad = true;
    return t;
}

bool sb_tensor_needs_grad(const sb_tensor *t)
{
    return t && t->requires_grad;
}

sb_tensor *sb_tensor_grad(const sb_tensor *t)
{
    return t && t->grad_current ? t->grad : NULL;
}

void sb_tensor_clear_grad(sb_tensor *t)
{
    if (t)
        tensor_drop_grad(t);
}

bool tensor_restore(sb_tensor *t)
{
    if (!t->rounded || !t->data_gone || t->rounded->data_gone)
        return true;
    const int64_t n = tensor_size(t);
    const uint16_t *from = t->rounded->data;
    float *to = pool_take(t->device->pool, tensor_bytes(t));
    if (!to)
        return sb_fail("out of memory for %s of %s", tensor_shape(t).text, sb_dtype_name(t->dtype));
#pragma omp parallel for schedule(static) if (n > 1 << 15)
    for (int64_t i = 0; i < n; i++)
        to[i] = sb_bf16_widen(from[i]);
    t->data = to;
    t->data_gone = false;
    atomic_store(&t->holders, 1);
    return true;
}
