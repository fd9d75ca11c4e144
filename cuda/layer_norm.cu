#include "cuda/norm.cuh"

namespace
{

template <class T> bool forward(const struct layer_norm_forward *f)
{
    queue_norm<T, true>(f->rows, f->C,
                        {(real_of<T>)f->epsilon, (const T *)f->x, (const T *)f->branch,
                         (const T *)f->gain, (const T *)f->bias, f->dropout, (T *)f->sum, (T *)f->y,
                         (real_of<T> *)f->mean, (real_of<T> *)f->scale});
    return launched("layer_norm");
}

template <class T> bool backward(const struct layer_norm_backward *b)
{
    queue_norm_gradients<T, true>(
        b->rows, b->C,
        {(const T *)b->x, (const T *)b->gain, (const real_of<T> *)b->mean,
         (const real_of<T> *)b->scale, (const T *)b->dy, (const T *)b->dsum, norm_target<T>(b->dx),
         norm_target<T>(b->dbranch), b->dropout, (real_of<T> *)b->partial},
        {b->dgain, b->dbias});
    return launched("layer_norm");
}

} // namespace

KERNELS_AND_BF16(layer_norm, forward<T>, backward<T>);
