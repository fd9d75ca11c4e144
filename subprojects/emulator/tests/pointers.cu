/*
 * Pointers inside of an argument structure, and a restricted pointer: a table of numbers is scaled,
 * and then turned around in shared memory.
 */
#include "check.cuh"

enum { COUNT = 64 };

/* The padding after `count` holds anything; the factor is no address. */
struct Scaling {
    int count;
    double factor;
    const float *from;
    float *to;
};

__global__ void scale(Scaling s)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < static_cast<unsigned>(s.count))
        s.to[i] = static_cast<float>(s.factor) * s.from[i];
}

/* y = twice x, then x's order is turned around. y may be x, so the second step must not read what
   the compiler may have taken from x before. */
__global__ void twice_and_turned(RESTRICTED(const float) x, float *y)
{
    const unsigned i = threadIdx.x;
    y[i] = 2 * x[i];
    __syncthreads();
#ifdef PLANTED_READ_RESTRICTED
    const float turned = x[COUNT - 1 - i];
#else
    const float turned = y[COUNT - 1 - i];
#endif
    __syncthreads();
    y[i] = turned;
}

int main()
{
    const std::vector<float> numbers = some_numbers(COUNT, 1);
    std::vector<float> expected(COUNT);
    for (int i = 0; i < COUNT; i++)
        expected[i] = 6 * numbers[COUNT - 1 - i];
    Array<float> x(numbers), y(COUNT), spare(COUNT);
    Scaling scaling = {COUNT, 3, x, y};
#ifdef PLANTED_HOST_IN_STRUCT
    scaling.from = numbers.data();
#endif
#ifdef PLANTED_FREED_IN_STRUCT
    cudaFree(spare.data);
    scaling.to = spare;
#endif
#ifdef PLANTED_PAST_END_IN_STRUCT
    scaling.to = static_cast<float *>(y) + 1;
#endif
    LAUNCH(scale, 2, COUNT / 2, 0, 0, scaling);
    LAUNCH(twice_and_turned, 1, COUNT, 0, 0, y.data, y);
    check_close(y.read(), expected, 1e-6, "scaled and turned around");
    return check_report();
}
