/* The elements of a tensor, as doubles. */
#include "tensor/buffer.h"
#include "tensor/dual.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

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
        *(uint16_t *)data = sb_bf16_round_double(value);
        break;
    case SB_I32:
        *(int32_t *)data = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, isnan(value) ? 0 : value));
        break;
    case SB_BOOL:
        *(uint8_t *)data = value != 0;
        break;
    }
}

/* Checks that t has a readable element of this index. */
static bool has_element(const char *who, const sb_tensor *t, int64_t index)
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
    if (!has_element("get", t, index))
        return NAN;
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual element = 0; /* the largest */
    t->device->download(&element, (const char *)t->data + (size_t)index * width, width);
    return to_double(t->dtype, &element);
}

bool sb_tensor_set(sb_tensor *t, int64_t index, double value)
{
    if (!has_element("put", t, index))
        return false;
    size_t width = sb_dtype_bytes(t->dtype);
    sb_dual element = 0;
    from_double(t->dtype, &element, value);
    tensor_note_write(t);
    return t->device->upload((char *)t->data + (size_t)index * width, &element, width);
}

double sb_tensor_value(const sb_tensor *t)
{
    if (t && tensor_size(t) == 1)
        return sb_tensor_get(t, 0);
    if (t)
        sb_fail("value: %s has %lld elements, not 1", tensor_shape(t).text,
                (long long)tensor_size(t));
    else
        fail_null("value", "t");
    return NAN;
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
    if (!ok) {
        sb_tensor_release(t);
        return NULL;
    }
    return t;
}

void *sb_tensor_dual_data(sb_tensor *t)
{
    if (!t)
        return fail_null("tensor_dual_data", "t");
    if (!tensor_readable("tensor_dual_data", t))
        return NULL;
    if (t->dtype != SB_DUAL)
        return sb_fail("tensor_dual_data: the elements are %s, not dual numbers",
                       sb_dtype_name(t->dtype));
    return t->data;
}

double sb_tensor_tangent(const sb_tensor *t, int64_t index)
{
    if (!has_element("tensor_tangent", t, index))
        return NAN;
    sb_dual element = 0;
    const size_t width = sizeof element;
    if (t->dtype == SB_DUAL)
        t->device->download(&element, (const char *)t->data + (size_t)index * width, width);
    return sb_dual_tangent(element);
}

/* ---- a tensor as text ---- */

enum { EDGE = 4 }; /* elements shown at either end of a long axis */

static void put_axis(struct buffer *text, const sb_tensor *t, int axis, int64_t start)
{
    if (axis == t->rank) {
        buffer_print(text, "%.*g", t->dtype == SB_I32 ? 10 : 5, sb_tensor_get(t, start));
        return;
    }
    int64_t stride = shape_size(t->rank - axis - 1, t->dim + axis + 1);
    buffer_add_text(text, "[");
    for (int64_t i = 0; i < t->dim[axis]; i++) {
        if (i > 0) {
            buffer_add_text(text, axis == t->rank - 1 ? " " : "\n");
            for (int pad = 0; pad <= axis && axis < t->rank - 1; pad++)
                buffer_add_text(text, " ");
        }
        if (i == EDGE && t->dim[axis] > 2 * EDGE + 1) {
            buffer_add_text(text, "...");
            i = t->dim[axis] - EDGE - 1;
            continue;
        }
        put_axis(text, t, axis + 1, start + i * stride);
    }
    buffer_add_text(text, "]");
}

char *sb_tensor_text(const sb_tensor *t)
{
    if (!t)
        return fail_null("tensor_text", "t");
    if (!tensor_readable("tensor_text", t))
        return NULL;
    struct buffer buffer = {0};
    buffer_print(&buffer, "%s %s%c", sb_dtype_name(t->dtype), tensor_shape(t).text,
                 t->rank > 1 ? '\n' : ' ');
    put_axis(&buffer, t, 0, 0);
    char *text = buffer_take(&buffer);
    return text ? text : sb_fail("tensor_text: out of memory");
}

void sb_tensor_print(const sb_tensor *t)
{
    if (!t) {
        printf("(no tensor) %s\n", sb_error());
        return;
    }
    char *text = sb_tensor_text(t);
    puts(text ? text : sb_error());
    sb_free(text);
}
