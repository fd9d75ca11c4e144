#include "tensor/dual.h"
#include "tensor/failure.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include <math.h>
#include <string.h>

static sb_tensor *handle_new(const char *who)
{
    sb_tensor *t = memory_new(sizeof *t);
    if (!t)
        return sb_fail("%s: out of memory", who);
    atomic_init(&t->refs, 1);
    atomic_init(&t->holders, 1);
    return t;
}

sb_tensor *tensor_new(const char *who, const sb_device *device, sb_dtype dtype, int rank,
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
    t->data = pool_take(device->pool, tensor_bytes(t));
    if (!t->data) {
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

void tensor_let_go(sb_tensor *t)
{
    if (t->data_gone)
        return;
    sb_tensor *owner = t->base ? t->base : t;
    t->data_gone = true;
    if (atomic_fetch_sub(&owner->holders, 1) == 1) {
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
    tensor_let_go(t);
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

static double to_double(sb_dtype dtype, const void *data)
{
    switch (dtype) {
    case SB_F32:
        return *(const float *)data;
    case SB_F64:
    case SB_DUAL: /* the value comes first */
        return *(const double *)data;
    case SB_BF16:
        return sb_bf16_widen(*(const uint16_t *)data);
    case SB_I32:
        return *(const int32_t *)data;
    case SB_BOOL:
        return *(const uint8_t *)data;
    }
    return NAN;
}

static void from_double(sb_dtype dtype, void *data, double value)
{
    switch (dtype) {
    case SB_F32:
        *(float *)data = (float)value;
        break;
    case SB_F64:
        *(double *)data = value;
        break;
    case SB_DUAL:
        *(sb_dual *)data = value;
        break;
    case SB_BF16:
        *(uint16_t *)data = sb_bf16_round((float)value);
        break;
    case SB_I32:
        *(int32_t *)data = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, isnan(value) ? 0 : value));
        break;
    case SB_BOOL:
        *(uint8_t *)data = value != 0;
        break;
    }
}

bool tensor_has(const char *who, const sb_tensor *t, int64_t index)
{
    if (!t)
        return fail_null(who, "t");
    if (!tensor_readable(who, t))
        return false;
    if (tensor_size(t) == 0)
        return sb_fail("%s: %s has no elements", who, tensor_shape(t).text);
    if (index < 0 || index >= tensor_size(t))
        return sb_fail("%s: index %lld is not in 0..%lld", who, (long long)index,
                       (long long)tensor_size(t) - 1);
    return true;
}

double sb_tensor_get(const sb_tensor *t, int64_t index)
{
    if (!tensor_has("get", t, index))
        return NAN;
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual element = 0; /* the largest */
    t->device->download(&element, (const char *)t->data + (size_t)index * width, width);
    return to_double(t->dtype, &element);
}

bool sb_tensor_set(sb_tensor *t, int64_t index, double value)
{
    if (!tensor_has("put", t, index))
        return false;
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual element = 0;
    from_double(t->dtype, &element, value);
    tensor_note_write(t);
    return t->device->upload((char *)t->data + (size_t)index * width, &element, width);
}

double sb_tensor_value(const sb_tensor *t)
{
    if (t && tensor_size(t) != 1) {
        sb_fail("value: %s has %lld elements, not 1", tensor_shape(t).text,
                (long long)tensor_size(t));
        return NAN;
    }
    if (!t) {
        fail_null("value", "t");
        return NAN;
    }
    return sb_tensor_get(t, 0);
}

enum { CHUNK = 2048 }; /* elements moved between a device and the host at a time */

bool tensor_read_part(const sb_tensor *t, int64_t start, int64_t count, double *values)
{
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual elements[CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        size_t n = (size_t)(count - done < CHUNK ? count - done : CHUNK);
        const char *from = (const char *)t->data + (size_t)(start + done) * width;
        if (!t->device->download(elements, from, n * width))
            return false;
        for (size_t i = 0; i < n; i++)
            values[(size_t)done + i] = to_double(t->dtype, (char *)elements + i * width);
    }
    return true;
}

bool tensor_write_part(sb_tensor *t, int64_t start, int64_t count, const double *values)
{
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual elements[CHUNK];
    tensor_note_write(t);
    for (int64_t done = 0; done < count; done += CHUNK) {
        size_t n = (size_t)(count - done < CHUNK ? count - done : CHUNK);
        char *to = (char *)t->data + (size_t)(start + done) * width;
        for (size_t i = 0; i < n; i++)
            from_double(t->dtype, (char *)elements + i * width, values[(size_t)done + i]);
        if (!t->device->upload(to, elements, n * width))
            return false;
    }
    return true;
}

bool sb_tensor_read(const sb_tensor *t, double *values)
{
    if (!t || !values)
        return fail_null("tensor_read", t ? "values" : "t");
    return tensor_readable("tensor_read", t) && tensor_read_part(t, 0, tensor_size(t), values);
}

bool sb_tensor_write(sb_tensor *t, const double *values)
{
    if (!t || !values)
        return fail_null("tensor_write", t ? "values" : "t");
    return tensor_readable("tensor_write", t) && tensor_write_part(t, 0, tensor_size(t), values);
}

sb_tensor *sb_tensor_full(sb_dtype dtype, int rank, const int64_t *dim, double value)
{
    sb_tensor *t = tensor_new("tensor", sb_device_in_use(), dtype, rank, dim);
    sb_dual elements[CHUNK];
    size_t width = sb_dtype_bytes(dtype);
    bool ok = t != NULL;
    for (int64_t i = 0; ok && i < CHUNK; i++)
        from_double(dtype, (char *)elements + (size_t)i * width, value);
    for (int64_t start = 0, n = t ? tensor_size(t) : 0; ok && start < n; start += CHUNK) {
        size_t count = (size_t)(n - start < CHUNK ? n - start : CHUNK);
        ok = t->device->upload((char *)t->data + (size_t)start * width, elements, count * width);
    }
    return t ? kept_if(t, ok) : NULL;
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

sb_tensor *sb_tensor_grad(const sb_tensor *t)
{
    return t && t->grad_current ? t->grad : NULL;
}

void sb_tensor_clear_grad(sb_tensor *t)
{
    if (t)
        tensor_drop_grad(t);
}
