/*
 * Functions that the tests of the emulator share. Each .cu file here is one program: it runs its
 * kernels, compares with plain C++, prints a line for each check that fails, and exits with 1 if
 * one failed. Compiled with -DPLANTED_<NAME> it contains that mistake (run.sh lists the
 * mode that finds it).
 */
#ifndef SOFTBACK_EMULATOR_CHECK_CUH
#define SOFTBACK_EMULATOR_CHECK_CUH

#include <launch.cuh>
#include <stdio.h>
#include <vector>

static int checks_failed, checks_passed;

static inline void check(bool holds, const char *sentence)
{
    if (!holds)
        printf("FAILED: %s\n", sentence);
    (holds ? checks_passed : checks_failed)++;
}

static inline void check_error(cudaError_t met, cudaError_t expected, const char *sentence)
{
    if (met != expected)
        printf("met %s, expected %s: ", cudaGetErrorName(met), cudaGetErrorName(expected));
    check(met == expected, sentence);
}

/* What main returns. */
static inline int check_report()
{
    printf("%d passed, %d failed\n", checks_passed, checks_failed);
    return checks_failed > 0 || checks_passed == 0;
}

/* Numbers in [-1, 1) that are the same everywhere (a linear congruential generator). */
static inline std::vector<float> some_numbers(size_t count, unsigned seed)
{
    std::vector<float> numbers(count);
    for (float &number : numbers) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<float>(seed >> 8) / 8388608.0f - 1;
    }
    return numbers;
}

/* Every number must be within the tolerance of the expected one; a NaN is not. */
template <class Type>
static void check_close(const std::vector<Type> &met, const std::vector<Type> &expected,
                        double tolerance, const char *what)
{
    for (size_t i = 0; i < expected.size(); i++) {
        double difference = fabs(static_cast<double>(met[i]) - static_cast<double>(expected[i]));
        if (difference <= tolerance)
            continue;
        printf("%s, element %zu: met %.9g, expected %.9g: ", what, i, static_cast<double>(met[i]),
               static_cast<double>(expected[i]));
        check(false, "the kernel agrees with plain C++");
        return;
    }
    check(true, what);
}

/* An array on the device. */
template <class Type> struct Array {
    Type *data;
    size_t count;

    explicit Array(size_t length) : data(nullptr), count(length)
    {
        cudaMalloc(&data, length * sizeof(Type));
    }
    explicit Array(const std::vector<Type> &values) : Array(values.size())
    {
        cudaMemcpy(data, values.data(), count * sizeof(Type), cudaMemcpyHostToDevice);
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array()
    {
        cudaFree(data);
    }
    operator Type *() const
    {
        return data;
    }
    /* A copy on the host; NaN after an error of the device. */
    std::vector<Type> read() const
    {
        std::vector<Type> values(count);
        memset(static_cast<void *>(values.data()), 0xff, count * sizeof(Type));
        cudaError_t error =
            cudaMemcpy(values.data(), data, count * sizeof(Type), cudaMemcpyDeviceToHost);
        check_error(error, cudaSuccess, "the device works without an error");
        return values;
    }
};

#endif
