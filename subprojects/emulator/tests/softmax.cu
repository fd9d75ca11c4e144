/*
 * Softmax of each row by one block. A reduction over the block uses shuffles within each warp, then
 * one slot of shared memory for each warp.
 */
#include "check.cuh"

struct Largest {
    static __device__ float start()
    {
        return -INFINITY;
    }
    static __device__ float join(float a, float b)
    {
        return fmaxf(a, b);
    }
};

struct Sum {
    static __device__ float start()
    {
        return 0;
    }
    static __device__ float join(float a, float b)
    {
        return a + b;
    }
};

template <class Reduction> static __device__ float over_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value = Reduction::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

template <class Reduction> static __device__ float over_block(float value, float *slot)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int warps = blockDim.x / 32;
#ifdef PLANTED_DIVERGENT_SHUFFLE
    if (lane < 16)
        value = Reduction::join(value, __shfl_xor_sync(0xffffffffu, value, 1));
#endif
    value = over_warp<Reduction>(value);
#ifndef PLANTED_NO_BARRIER_BEFORE_WRITE
    __syncthreads(); /* a slow warp may still read the slots of the last reduction */
#endif
    if (lane == 0)
        slot[warp] = value;
#ifndef PLANTED_NO_BARRIER_AFTER_WRITE
    __syncthreads();
#endif
#ifdef PLANTED_UNWRITTEN_SHARED
    (void)warps;
    value = slot[lane];
#else
    value = lane < warps ? slot[lane] : Reduction::start();
#endif
    return over_warp<Reduction>(value);
}

__global__ void softmax(const float *x, float *y, int columns)
{
    SHARED(float, slot, [32]);
    x += static_cast<size_t>(blockIdx.x) * columns;
    y += static_cast<size_t>(blockIdx.x) * columns;
#ifdef PLANTED_EARLY_RETURN
    if (static_cast<int>(threadIdx.x) >= columns)
        return;
#endif
#ifdef PLANTED_READ_PAST_END
    int end = columns + 1;
#else
    int end = columns;
#endif
    float largest = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < end; c += blockDim.x)
        largest = fmaxf(largest, x[c]);
    largest = over_block<Largest>(largest, slot);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += __expf(x[c] - largest);
    sum = over_block<Sum>(sum, slot);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        y[c] = __expf(x[c] - largest) / sum;
}

static std::vector<float> expected(const std::vector<float> &x, int columns)
{
    std::vector<float> y(x.size());
    for (size_t row = 0; row < x.size(); row += columns) {
        double sum = 0;
        for (int c = 0; c < columns; c++)
            sum += exp(static_cast<double>(x[row + c]));
        for (int c = 0; c < columns; c++)
            y[row + c] = static_cast<float>(exp(static_cast<double>(x[row + c])) / sum);
    }
    return y;
}

static void try_shape(int rows, int columns, int threads)
{
    std::vector<float> x = some_numbers(static_cast<size_t>(rows) * columns, 1);
    Array<float> from(x), to(x.size());
    LAUNCH(softmax, rows, threads, 0, 0, from, to, columns);
    check_close(to.read(), expected(x, columns), 1e-6, "softmax");
}

int main()
{
    try_shape(5, 77, 128);
    try_shape(3, 128, 64);
    try_shape(7, 300, 256);
    try_shape(2, 1, 32);
    return check_report();
}
