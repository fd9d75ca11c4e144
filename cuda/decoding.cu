#include "cuda/device.cuh"
#include "ops/decoding.h"

namespace
{

/* One block, so that every thread has read the position before it grows. */
template <class T> __global__ void note_symbols(decoding_note n)
{
    const T *log_p = (const T *)n.log_p;
    double *noted = n.noted + *n.position % n.steps * n.B * 2;
    __syncthreads();
    for (int64_t b = threadIdx.x; b < n.B; b += blockDim.x) {
        noted[2 * b] = n.best[b];
        noted[2 * b + 1] = (double)(real_of<T>)log_p[b];
        n.ids[b] = n.best[b];
        n.lengths[b]++;
    }
    if (threadIdx.x == 0)
        (*n.position)++;
}

template <class T> bool note(const struct decoding_note *n)
{
    if (n->B > 0)
        LAUNCH((note_symbols<T>), dim3(1), dim3(THREADS), 0, stream, *n);
    return launched("decode");
}

} // namespace

KERNELS_AND_BF16(decoding, note<T>);
