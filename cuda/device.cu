/* The device: opens it, allocates memory and copies data. */
#include "abi.h"
#include "cuda/device.cuh"
#include "cuda/ids.cuh"
#include <stdio.h>

const struct plugin_host *host;
cudaStream_t stream;

static bool lost; /* a kernel caused an error from which the device does not recover */

/* A stream without work, so that a query of it gives nothing but the state of the device; one that
   is never captured, since a query would end the capture. */
static cudaStream_t health;

bool cuda_ok(cudaError_t error, const char *who)
{
    if (error == cudaSuccess)
        return true;
    cudaGetLastError(); /* clears the error, so that the next launch reports only its own */
    lost = lost || (health && cudaStreamQuery(health) != cudaSuccess);
    const char *after = lost ? "; the device is lost to this program" : "";
    return host->fail("%s: cuda: %s%s", who, cudaGetErrorString(error), after) != nullptr;
}

bool launched(const char *operation)
{
    return cuda_ok(cudaGetLastError(), operation);
}

/* CUDA has a present device for each thread, at first device 0. */
static void device_enter()
{
    static thread_local bool entered;
    if (!entered)
        entered = cuda_ok(cudaSetDevice(host->device), "device");
}

/* NULL without a message when there is no memory: the pool may try again, and the caller reports
   it. Any other error, such as that of a lost device, is reported here. */
static void *allocated(cudaError_t error, void *block)
{
    if (error == cudaSuccess)
        return block;
    if (error == cudaErrorMemoryAllocation)
        cudaGetLastError();
    else
        cuda_ok(error, "allocation");
    return nullptr;
}

static void *device_system_take(size_t bytes)
{
    void *block = nullptr;
    device_enter();
    const cudaError_t error = cudaMalloc(&block, bytes ? bytes : 1);
    return allocated(error, block);
}

static void device_system_give(void *block)
{
    cudaFree(block); /* waits for the kernels that use it */
}

static void *device_staging_take(size_t bytes)
{
    void *block = nullptr;
    device_enter();
    const cudaError_t error = cudaMallocHost(&block, bytes ? bytes : 1);
    return allocated(error, block);
}

static void device_staging_give(void *block)
{
    cudaFreeHost(block);
}

static void device_poison(void *block, size_t bytes)
{
    cudaMemsetAsync(block, 0xff, bytes, stream);
}

static bool device_synchronize()
{
    device_enter();
    if (capturing)
        return host->fail("cuda: nothing can be read while a graph is captured");
    ids_collect();
    bool ok = cuda_ok(cudaStreamSynchronize(stream), "a kernel");
    return ok && ids_settle();
}

/* For pageable host memory, CUDA has copied the data when the call returns. */
static bool device_upload(void *to, const void *from, size_t bytes)
{
    device_enter();
    const void *kept = capturing ? graph_keep(from, bytes) : from;
    return kept &&
           cuda_ok(cudaMemcpyAsync(to, kept, bytes, cudaMemcpyHostToDevice, stream), "upload");
}

static bool device_download(void *to, const void *from, size_t bytes)
{
    device_enter();
    return (capturing || cuda_ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream),
                                 "download")) &&
           device_synchronize();
}

static bool device_copy(void *to, const void *from, size_t bytes)
{
    device_enter();
    return cuda_ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
}

static bool device_zero(void *to, size_t bytes)
{
    device_enter();
    return cuda_ok(cudaMemsetAsync(to, 0, bytes, stream), "zero");
}

static char description[400];

/* "": the only one; or ", device 1 of 0 to 3". */
static const char *place_among(int devices)
{
    static char text[64];
    if (devices > 1)
        snprintf(text, sizeof text, ", device %d of 0 to %d", host->device, devices - 1);
    return text;
}

static bool check_number(int devices)
{
    if (devices == 0)
        return host->fail("cuda: the driver shows no device");
    if (host->device >= devices)
        return host->fail("cuda: there is no device %d; the driver shows %d, from 0 to %d",
                          host->device, devices, devices - 1);
    return true;
}

/* The device, its streams and its description. */
static bool open_device()
{
    int devices = 0, driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaErrorInsufficientDriver)
        return host->fail("cuda: no NVIDIA driver, or one too old for this build's CUDA; update "
                          "the driver, or use the CPU");
    if (!cuda_ok(error, "the driver"))
        return false;
    cudaDeviceProp about;
    if (!check_number(devices) || !cuda_ok(cudaSetDevice(host->device), "device") ||
        !cuda_ok(cudaGetDeviceProperties(&about, host->device), "device") ||
        !cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream") ||
        !cuda_ok(cudaStreamCreateWithFlags(&health, cudaStreamNonBlocking), "stream"))
        return false;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(description, sizeof description,
             "%s, %.0f GiB, %d multiprocessors, compute %d.%d, CUDA %d.%d (driver %d.%d)%s",
             about.name, (double)about.totalGlobalMem / (1 << 30), about.multiProcessorCount,
             about.major, about.minor, runtime / 1000, runtime % 1000 / 10, driver / 1000,
             driver % 1000 / 10, place_among(devices));
    return true;
}

/* All rows of kernels, in the order of ops/meson.build's lists; the last pointer is NULL. */
#define DECLARE(op) extern const struct plugin_row op##_cuda_row;
#define POINTER(op) &op##_cuda_row,
OPERATIONS(DECLARE)
static const struct plugin_row *const rows[] = {OPERATIONS(POINTER) nullptr};

extern "C" SB_API const struct plugin *softback_plugin(const struct plugin_host *given)
{
    static struct plugin plugin = {description,
                                   device_enter,
                                   device_system_take,
                                   device_system_give,
                                   device_staging_take,
                                   device_staging_give,
                                   device_poison,
                                   device_upload,
                                   device_download,
                                   device_copy,
                                   device_zero,
                                   device_synchronize,
                                   {},
                                   rows};
    host = given;
    if (given->abi != SOFTBACK_ABI) {
        given->fail("cuda: the plug-in was built with another version of softback");
        return nullptr;
    }
    if (!open_device() || !graph_ready())
        return nullptr;
    plugin.graphs = graph_functions();
    return &plugin;
}
