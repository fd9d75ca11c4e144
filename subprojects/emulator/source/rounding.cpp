/*
 * With SOFTBACK_EMULATOR_ROUNDING=1 results are as inexact as a device's may be; a limit that a
 * test derives from exact functions then fails here, and not first on a device.
 *
 * Functions: CUDA C++ Programming Guide, "Mathematical Functions": the most ulps. ex2.approx: PTX
 * ISA, a relative error of 2^-22. An error depends only on the argument and the seed, as a device's
 * depends only on the argument.
 *
 * Sums of tensor cores: the terms are aligned with the largest one and cut to 1 bit more than a
 * float has, and so is their sum (Fasi, Higham, Mikaitis and Pranesh 2021, "Numerical behavior of
 * NVIDIA tensor cores", table 3).
 */
#include "emulator.h"

namespace emulator
{

static uint64_t mixed(uint64_t bits)
{
    bits = (bits ^ settings().seed) * 0x9E3779B97F4A7C15;
    return bits ^ bits >> 29;
}

/* -most to most. */
static int64_t steps(uint64_t bits, int most)
{
    return static_cast<int64_t>(mixed(bits) * 0x2545F4914F6CDD1D >> 33) % (2 * most + 1) - most;
}

float inexact(float exact, float x, int ulps)
{
    if (!settings().rounding || x == 0 || !isnormal(exact))
        return exact;
    const uint32_t bits = __float_as_uint(exact);
    return __uint_as_float(bits + static_cast<uint32_t>(steps(__float_as_uint(x), ulps)));
}

double inexact(double exact, double x, int ulps)
{
    if (!settings().rounding || x == 0 || !isnormal(exact))
        return exact;
    const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(exact));
    const uint64_t of_x = static_cast<uint64_t>(__double_as_longlong(x));
    return __longlong_as_double(
        static_cast<long long>(bits + static_cast<uint64_t>(steps(of_x, ulps))));
}

float tensor_core_sum(float sum, const float *a, ptrdiff_t a_step, const float *b, ptrdiff_t b_step,
                      int terms)
{
    double all[17] = {sum};
    double largest = fabs(static_cast<double>(sum));
    for (int i = 0; i < terms; i++) {
        all[1 + i] = static_cast<double>(a[i * a_step]) * static_cast<double>(b[i * b_step]);
        largest = fmax(largest, fabs(all[1 + i]));
    }
    if (!isfinite(largest) || largest == 0) {
        for (int i = 0; i < terms; i++)
            sum += a[i * a_step] * b[i * b_step];
        return sum;
    }
    const double unit = ldexp(1, ilogb(largest) - 24);
    double total = 0;
    for (int i = 0; i <= terms; i++)
        total += trunc(all[i] / unit) * unit;
    const double last = total == 0 ? unit : ldexp(1, ilogb(total) - 23);
    return static_cast<float>(trunc(total / last) * last);
}

} // namespace emulator
