/*
 * Mistakes that the emulator reports: each gives the error of a real device, and a message with the
 * cause. A kernel's error stays until the device is reset.
 */
#include "check.cuh"
#include <string>
#include <unistd.h>

__global__ void add_one(float *x, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] += 1;
}

__global__ void set_one(float *x, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = 1;
}

__global__ void divergent_barrier(float *x)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    x[threadIdx.x] = 0;
}

__global__ void half_a_barrier(float *x)
{
    if (threadIdx.x % 2)
        __syncthreads();
    x[threadIdx.x] = 0;
}

__global__ void not_in_mask(float *x)
{
    if (threadIdx.x < 16)
        x[threadIdx.x] = __shfl_xor_sync(0xffu, x[threadIdx.x], 1);
}

__global__ void from_outside(float *x)
{
    if (threadIdx.x < 16)
        x[threadIdx.x] = __shfl_down_sync(0xffffu, 1.0f, 8);
}

__global__ void shared_too_far(float *x)
{
    SHARED(float, tile, [32]);
    float *slot = tile; /* hides the length from the undefined-behaviour sanitizer */
    slot[threadIdx.x + 1] = 1;
    __syncthreads();
    x[threadIdx.x] = slot[threadIdx.x];
}

__global__ void far_away(float *x)
{
    x[1LL << 31] = 1;
}

__global__ void null_pointer(const float *from, float *x)
{
    x[0] = from[threadIdx.x];
}

__global__ void deep(float *x)
{
    volatile char large[400000];
    for (int i = 0; i < 400000; i++)
        large[i] = static_cast<char>(i);
    x[0] = large[7];
}

__global__ void divide(int *x)
{
    x[0] = static_cast<int>(blockDim.x) / x[threadIdx.x + 1];
}

__global__ void trap()
{
    if (threadIdx.x == 3)
        __trap();
}

/* Captures what is written to stderr while it exists. */
struct Capture {
    FILE *file;
    int before;
    Capture() : file(tmpfile()), before(dup(2))
    {
        dup2(fileno(file), 2);
    }
    ~Capture()
    {
        dup2(before, 2);
        close(before);
        fclose(file);
    }
    std::string text()
    {
        char bytes[5000];
        rewind(file);
        return std::string(bytes, fread(bytes, 1, sizeof bytes, file));
    }
};

/* Runs `mistake` on a fresh device; then waits. */
template <class Mistake> static void expect(cudaError_t error, const char *message, Mistake mistake)
{
    cudaDeviceReset();
    float *x;
    cudaMalloc(&x, 1024 * sizeof(float));
    cudaMemset(x, 0, 1024 * sizeof(float));
    Capture captured;
    mistake(x);
    cudaError_t met = cudaDeviceSynchronize();
    if (met == cudaSuccess)
        met = cudaGetLastError();
    std::string text = captured.text();
    check_error(met, error, message);
    if (text.find(message) == std::string::npos)
        printf("printed \"%s\": ", text.c_str());
    check(text.find(message) != std::string::npos, message);
}

static void try_launches()
{
    std::vector<float> host(1024);
    expect(cudaErrorInvalidConfiguration, "beyond the device's limits",
           [](float *x) { LAUNCH(add_one, 1, 2048, 0, 0, x, 4); });
    expect(cudaErrorInvalidConfiguration, "grid (0, 1, 1)",
           [](float *x) { LAUNCH(add_one, 0, 32, 0, 0, x, 4); });
    expect(cudaErrorInvalidValue, "50000 bytes of shared memory of 49152",
           [](float *x) { LAUNCH(add_one, 1, 32, 50000, 0, x, 4); });
    expect(cudaErrorIllegalAddress, "is host memory",
           [&](float *) { LAUNCH(add_one, 1, 32, 0, 0, host.data(), 4); });
    expect(cudaErrorIllegalAddress, "not inside a device allocation", [](float *x) {
        cudaFree(x);
        LAUNCH(add_one, 1, 32, 0, 0, x, 4);
    });
}

static void try_threads()
{
    expect(cudaErrorLaunchFailure, "waits in __syncthreads at",
           [](float *x) { LAUNCH(divergent_barrier, 1, 64, 0, 0, x); });
    expect(cudaErrorLaunchFailure, "deadlock",
           [](float *x) { LAUNCH(half_a_barrier, 1, 64, 0, 0, x); });
    expect(cudaErrorLaunchFailure, "is not in its mask 000000ff",
           [](float *x) { LAUNCH(not_in_mask, 1, 32, 0, 0, x); });
    expect(cudaErrorLaunchFailure, "thread (3, 0, 0): __trap()",
           [](float *) { LAUNCH(trap, 1, 32, 0, 0); });
    cudaDeviceReset();
    Array<float> x(32);
    LAUNCH(from_outside, 1, 32, 0, 0, x);
    check(isnan(x.read()[9]), "a lane outside of the mask gives NaN");
}

static void try_memory()
{
    expect(cudaErrorIllegalAddress, "past the end of a buffer of 4000 bytes", [](float *) {
        float *small;
        cudaMalloc(&small, 4000);
        LAUNCH(set_one, 4, 256, 0, 0, small, 1001);
    });
    expect(cudaErrorLaunchFailure, "past the end of a shared variable",
           [](float *x) { LAUNCH(shared_too_far, 1, 32, 0, 0, x); });
    expect(cudaErrorIllegalAddress, "outside of any allocation",
           [](float *x) { LAUNCH(far_away, 1, 32, 0, 0, x); });
    expect(cudaErrorIllegalAddress, "null pointer", [](float *x) {
        LAUNCH(null_pointer, 1, 32, 0, 0, static_cast<const float *>(nullptr), x);
    });
    expect(cudaErrorIllegalAddress, "stack is full", [](float *x) { LAUNCH(deep, 1, 1, 0, 0, x); });
    expect(cudaErrorLaunchFailure, "divided by zero",
           [](float *x) { LAUNCH(divide, 1, 1, 0, 0, reinterpret_cast<int *>(x)); });
}

static void try_transfers()
{
    std::vector<float> host(2048);
    expect(cudaErrorInvalidValue, "the destination",
           [&](float *x) { cudaMemcpy(host.data(), x, 4096, cudaMemcpyHostToDevice); });
    expect(cudaErrorInvalidValue, "not wholly inside a device allocation",
           [&](float *x) { cudaMemcpy(x, host.data(), 4100, cudaMemcpyHostToDevice); });
    expect(cudaErrorInvalidValue, "cudaMemset of 16 bytes",
           [&](float *) { cudaMemset(host.data(), 0, 16); });
    expect(cudaErrorInvalidValue, "already freed", [](float *x) {
        cudaFree(x);
        cudaFree(x);
    });
    expect(cudaErrorInvalidValue, "not the start of a device allocation",
           [](float *x) { cudaFree(x + 1); });
}

static void try_lasting_error()
{
    cudaDeviceReset();
    Array<float> x(32);
    {
        Capture captured;
        LAUNCH(half_a_barrier, 1, 32, 0, 0, x);
        cudaDeviceSynchronize();
    }
    float *more;
    check_error(cudaMalloc(&more, 4), cudaErrorLaunchFailure, "a kernel's error stays");
    check_error(cudaGetLastError(), cudaErrorLaunchFailure, "the last error is returned");
    check_error(cudaGetLastError(), cudaSuccess, "the last error is reset");
    check_error(cudaStreamQuery(0), cudaErrorLaunchFailure, "a query of a stream returns it");
    cudaDeviceReset();
    check_error(cudaMalloc(&more, 4), cudaSuccess, "a reset removes it");
}

/* More than available: an ordinary error, after which smaller allocations succeed. */
static void try_out_of_memory()
{
    size_t free_bytes, total_bytes;
    float *x = nullptr, *y;
    cudaDeviceReset();
    cudaMemGetInfo(&free_bytes, &total_bytes);
    check_error(cudaMalloc(&x, free_bytes + 1), cudaErrorMemoryAllocation,
                "more memory than free is refused");
    check(!x, "a failed cudaMalloc gives no pointer");
    check_error(cudaGetLastError(), cudaErrorMemoryAllocation, "the error is the last one");
    check_error(cudaGetLastError(), cudaSuccess, "this error does not stay");
    check_error(cudaMalloc(&x, 1 << 19), cudaSuccess, "half of a MiB fits");
    check_error(cudaMalloc(&y, 1 << 19), cudaSuccess, "the other half fits");
    if (total_bytes == 1 << 20)
        check_error(cudaMalloc(&y, 1), cudaErrorMemoryAllocation, "no further byte fits");
    cudaFree(x);
    check_error(cudaMalloc(&y, 1 << 19), cudaSuccess, "freed memory is reused");
    cudaDeviceReset();
}

int main()
{
    try_launches();
    try_threads();
    try_memory();
    try_transfers();
    try_lasting_error();
    try_out_of_memory();
    return check_report();
}
