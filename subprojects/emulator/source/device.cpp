/*
 * The device: its name and properties, and the count of its work. It reports compute
 * capability 9.0.
 */
#include "emulator.h"
#include <stdio.h>

using namespace emulator;

emulator_work emulator::work;

extern "C" __attribute__((visibility("default"))) emulator_work softback_emulator_work()
{
    return emulator::work;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = settings().devices;
    return settings().devices ? lasting_error : fail(cudaErrorNoDevice);
}

static cudaError_t check_device(int device)
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    if (device < 0 || device >= settings().devices)
        return fail(cudaErrorInvalidDevice);
    return lasting_error;
}

static thread_local int present;

int emulator::present_device()
{
    return present;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = present;
    return check_device(present);
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t error = check_device(device);
    present = error ? present : device;
    return error;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    if (cudaError_t error = check_device(device))
        return error;
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "emulated on the host");
    properties->totalGlobalMem = settings().memory;
    properties->sharedMemPerBlock = max_shared_unasked;
    properties->sharedMemPerBlockOptin = max_shared;
    properties->sharedMemPerMultiprocessor = max_shared + 1024;
    properties->regsPerBlock = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = max_threads;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->multiProcessorCount = 4;
    properties->major = 9;
    properties->minor = 0;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp properties;
    if (cudaError_t error = cudaGetDeviceProperties(&properties, device))
        return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        *value = properties.maxThreadsPerBlock;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = static_cast<int>(properties.sharedMemPerBlock);
        return cudaSuccess;
    case cudaDevAttrWarpSize:
        *value = properties.warpSize;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = properties.multiProcessorCount;
        return cudaSuccess;
    case cudaDevAttrL2CacheSize:
        *value = properties.l2CacheSize;
        return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = properties.maxThreadsPerMultiProcessor;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = properties.major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = properties.minor;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = static_cast<int>(properties.sharedMemPerMultiprocessor);
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(properties.sharedMemPerBlockOptin);
        return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue);
}

/* Resets all state of the device: memory, streams, events, queued work, and the sticky error. */
cudaError_t cudaDeviceReset()
{
    if (!settings().devices)
        return fail(cudaErrorNoDevice);
    streams_reset();
    memory_reset();
    forget_errors();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = settings().devices ? CUDART_VERSION : 0;
    return cudaSuccess;
}
