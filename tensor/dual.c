#include "tensor/dual.h"
#include "tensor/failure.h"
#include "tensor/storage.h"
#include <math.h>

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
    if (!tensor_has("tensor_tangent", t, index))
        return NAN;
    sb_dual element = 0;
    const size_t width = sizeof element;
    if (t->dtype == SB_DUAL)
        t->device->download(&element, (const char *)t->data + (size_t)index * width, width);
    return sb_dual_tangent(element);
}
