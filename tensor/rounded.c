/* Tensors of f32 that are stored as bf16 for a while. */
#include "tensor/failure.h"
#include "tensor/storage.h"

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
