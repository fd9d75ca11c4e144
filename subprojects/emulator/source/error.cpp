/*
 * Errors: one message on stderr, and the error code that a device would return.
 */
#include "emulator.h"
#include <stdarg.h>
#include <stdio.h>

namespace emulator
{

const Grid *running_grid;
bool kernel_failed;
cudaError_t lasting_error;
static cudaError_t last_error;

void complain(const char *format, ...)
{
    char text[4000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "CUDA emulator: %s\n", text);
}

cudaError_t fail(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t fail_for_good(cudaError_t error)
{
    if (lasting_error == cudaSuccess)
        lasting_error = error;
    return fail(error);
}

void forget_errors()
{
    lasting_error = last_error = cudaSuccess;
    kernel_failed = false;
}

/* On a fiber this does not return: it ends the kernel and abandons its fibers. */
void kernel_error(const char *format, ...)
{
    char text[3000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const Grid &grid = *running_grid;
    const Position &at = position;
    complain("kernel %s, launched at %s:%d, block (%u, %u, %u), thread (%u, %u, %u): %s",
             grid.name.c_str(), grid.site.file, grid.site.line, at.block.x, at.block.y, at.block.z,
             at.thread.x, at.thread.y, at.thread.z, text);
    kernel_failed = true;
    fail_for_good(cudaErrorLaunchFailure);
    if (!fiber_is_host())
        fiber_switch_to_host();
}

struct Name {
    cudaError_t error;
    const char *name, *sentence;
};

static const Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
};

static const Name *find(cudaError_t error)
{
    for (const Name &name : names)
        if (name.error == error)
            return &name;
    return nullptr;
}

} // namespace emulator

using namespace emulator;

const char *cudaGetErrorName(cudaError_t error)
{
    const Name *name = find(error);
    return name ? name->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const Name *name = find(error);
    return name ? name->sentence : "unrecognized error code";
}

cudaError_t cudaPeekAtLastError()
{
    return last_error;
}

/* Resets a lasting error too: only the calls that use the device return it again. */
cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
