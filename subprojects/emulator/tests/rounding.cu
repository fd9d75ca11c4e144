/*
 * With SOFTBACK_EMULATOR_ROUNDING=1 functions are off by the ulps that CUDA documents, and no more,
 * equally in every run; and tensor cores cut their sums instead of rounding them.
 */
#include "check.cuh"
#include <tensor_core.cuh>

enum { COUNT = 256 };

__global__ void exponentials(const float *x, float *y)
{
    y[threadIdx.x] = expf(x[threadIdx.x]);
}

/* d plus 16 ones. At 2^24 these are 8 units of the last place. At the largest number below 2^29,
   whose last place is 32, each of them is cut; their sum, rounded, would give 2^29. */
__global__ void sums(float *y)
{
    const uint32_t ones = 0x3f803f80u;
    const uint32_t a[4] = {ones, ones, ones, ones}, b[2] = {ones, ones};
    const float begin = blockIdx.x == 0 ? 0x1p24f : 0x1.fffffep28f;
    float d[4] = {begin, begin, begin, begin};
    mma_m16n8k16_bf16(d, a, b);
    if (threadIdx.x == 0)
        y[blockIdx.x] = d[0];
}

int main()
{
    setenv("SOFTBACK_EMULATOR_ROUNDING", "1", 1);
    std::vector<float> numbers = some_numbers(COUNT, 3);
    Array<float> x(numbers), first(COUNT), second(COUNT), y(2);
    LAUNCH(exponentials, 1, COUNT, 0, 0, x, first);
    LAUNCH(exponentials, 1, COUNT, 0, 0, x, second);
    LAUNCH(sums, 2, 32, 0, 0, y);
    const std::vector<float> met = first.read(), again = second.read();
    int different = 0;
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        const double exact = (exp)(static_cast<double>(numbers[i]));
        const float below = nextafterf(static_cast<float>(exact), 0);
        const double ulp = static_cast<double>(static_cast<float>(exact)) - below;
        worst = fmax(worst, fabs(met[i] - exact) / ulp);
        different += met[i] != static_cast<float>(exact);
    }
    check(memcmp(met.data(), again.data(), COUNT * sizeof(float)) == 0,
          "an argument has one result");
    check(different > COUNT / 4, "many results are inexact");
#ifdef PLANTED_EXACT_LIMIT
    const double limit = 0.6;
#else
    const double limit =
        3.1; /* half an ulp of the host, 1 of the device; an ulp below 2^n is half */
#endif
    check(worst <= limit, "the error is as documented");
    const std::vector<float> sum = y.read();
    check(sum[0] == 0x1p24f + 16, "a sum that fits is exact");
    check(sum[1] == 0x1.fffffep28f, "a term of half a unit is cut");
    return check_report();
}
